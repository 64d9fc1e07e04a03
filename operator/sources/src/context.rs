//! The state that all reconciles of sources share.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use kube::{
    Client,
    runtime::{events::Recorder, reflector::ObjectRef},
};
use skillet_api::SkillSource;

use crate::{due::Looked, metrics::Metrics};

/// Settings of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory for the files of a transfer. It needs room for the largest repositories, a few at a time.
    pub work: PathBuf,
}

pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) recorder: Recorder,
    /// Hosts that the SkillPolicy allows.
    pub(crate) allowed_hosts: Mutex<Arc<Vec<String>>>,
    /// Last looks.
    pub(crate) looked: Mutex<HashMap<ObjectRef<SkillSource>, Looked>>,
}
