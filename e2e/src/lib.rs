//! The harness of the end-to-end lane: user journeys against a real cluster with Skillet installed.
//!
//! A journey has a namespace of its own, applies what a user would apply, and looks at what the cluster then says.
//! It waits for states and never sleeps. The tests are in `tests/`, one file per subject.
//!
//! | variable | meaning |
//! |---|---|
//! | `SKILLET_E2E=1` | run; without it every test says that it is skipped |
//! | `KUBECONFIG` | the cluster |
//! | `SKILLET_KEEP=1` | leave namespaces as they are, to be looked at |
//! | `SKILLET_SANDBOX_NAMESPACE` | where sandboxes are; default `skillet-sandboxes` |
//! | `SKILLET_OPERATOR_LOG` | a log file, where the operator does not run as a pod |
//! | `SKILLET_METRICS_URL` | the operator's metrics, where it does not run as a pod |
//! | `SKILLET_NODE_LOGS` | the folder of container logs, where the node is this machine |
//! | `SKILLET_GATEWAY_URL` | the gateway, where it does not run as a pod |
//! | `SKILLET_MODEL_URL` | a running `gateway/model/model.py` that gateway and tests can reach, instead of a pod |
//! | `SKILLET_KILLS`, `SKILLET_ROUNDS` | kills of the operator under load, rounds of a frozen leader |
//! | `SKILLET_BURST`, `SKILLET_SWARM` | executions at once that run, that wait or fail |
//! | `SKILLET_LONG_INPUTS` | the longest inputs that one tenant has at a time |
//! | `SKILLET_SILENCE` | seconds for which a part is silent |
//! | `SKILLET_RATE`, `SKILLET_DOWNLOAD_MB` | runs a second during an upgrade, size of a download |
//! | `SKILLET_SEED` | the seed of random times |
//! | `SKILLET_E2E_IMAGE` | an image with `/bin/busybox` and no runner, where none can be loaded |

pub mod agent;
pub mod attacks;
pub mod cluster;
pub mod draft;
pub mod examples;
pub mod execute;
pub mod gateway;
pub mod hostile;
pub mod image;
pub mod journey;
pub mod kubectl;
pub mod manifest;
pub mod metrics;
pub mod network;
pub mod notes;
pub mod observe;
pub mod operator;
pub mod policy;
pub mod process;
pub mod report;
pub mod sandbox;
pub mod scale;
pub mod stand_in;
pub mod wait;

pub use draft::SkillDraft;
pub use execute::Ended;
pub use journey::{Journey, journey, journey_under};
pub use scale::amount;
pub use wait::{PATIENCE, eventually};

/// Returns the folder of this package. Tests run in it, as cargo does it, and the demo at the top of the repository. A path that
/// the compiler knows would make each clone compile again.
pub fn package_folder() -> std::path::PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    if here.join("attacks").is_dir() { here } else { here.join("e2e") }
}
