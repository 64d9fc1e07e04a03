//! The volumes of a sandbox: the runner, for images without it, and the files of the skill.

use k8s_openapi::{
    api::core::v1::{EmptyDirVolumeSource, ImageVolumeSource, Volume, VolumeMount},
    apimachinery::pkg::api::resource::Quantity,
};

use super::{BUNDLE_FOLDER, RUNNER_FOLDER, SandboxSpec};
use crate::settings::{RunnerDelivery, SandboxSettings};

const RUNNER_VOLUME: &str = "runner";
const BUNDLE_VOLUME: &str = "bundle";

pub(super) fn volumes(spec: &SandboxSpec, settings: &SandboxSettings) -> Option<Vec<Volume>> {
    let runner = spec.needs_runner.then(|| runner_volume(settings.runner_delivery, settings));
    let bundle = spec.bundle_image.as_ref().map(|reference| Volume {
        name: BUNDLE_VOLUME.into(),
        // A digest never changes, so an image that the node has is the right one.
        image: Some(ImageVolumeSource {
            reference: Some(reference.clone()),
            pull_policy: Some("IfNotPresent".into()),
        }),
        ..Volume::default()
    });
    let volumes: Vec<Volume> = runner.into_iter().chain(bundle).collect();
    (!volumes.is_empty()).then_some(volumes)
}

pub(super) fn mounts(spec: &SandboxSpec) -> Option<Vec<VolumeMount>> {
    let runner = spec.needs_runner.then(|| runner_mount(true));
    let bundle = spec.bundle_image.as_ref().map(|_reference| VolumeMount {
        name: BUNDLE_VOLUME.into(),
        mount_path: BUNDLE_FOLDER.into(),
        read_only: Some(true),
        ..VolumeMount::default()
    });
    let mounts: Vec<VolumeMount> = runner.into_iter().chain(bundle).collect();
    (!mounts.is_empty()).then_some(mounts)
}

fn runner_volume(delivery: RunnerDelivery, settings: &SandboxSettings) -> Volume {
    let (image, empty_dir) = match delivery {
        RunnerDelivery::ImageVolume => (
            Some(ImageVolumeSource {
                reference: Some(settings.runner_image.clone()),
                pull_policy: settings.image_pull_policy.clone(),
            }),
            None,
        ),
        RunnerDelivery::InitContainer => (
            None,
            Some(EmptyDirVolumeSource {
                size_limit: Some(Quantity("16Mi".into())),
                ..EmptyDirVolumeSource::default()
            }),
        ),
    };
    Volume { name: RUNNER_VOLUME.into(), image, empty_dir, ..Volume::default() }
}

pub(super) fn runner_mount(is_read_only: bool) -> VolumeMount {
    VolumeMount {
        name: RUNNER_VOLUME.into(),
        mount_path: RUNNER_FOLDER.into(),
        read_only: Some(is_read_only),
        ..VolumeMount::default()
    }
}
