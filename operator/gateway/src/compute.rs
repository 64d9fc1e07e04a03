//! Work of the processor that grows with a request: parsing, searching, writing.

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Work on more bytes takes a millisecond or more; moving other tasks away takes some ten microseconds.
const LARGE: usize = 256 * 1024;

/// Runs `work`, which takes time for each of `bytes`. If they are many, the other tasks of this worker move to another
/// one first, so that no stream waits.
pub(crate) fn compute<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if bytes < LARGE || !matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        return work();
    }
    block_in_place(work)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Blocks the only worker until another task of it has run.
    async fn wait_for_another_task(bytes: usize) -> Result<(), mpsc::RecvTimeoutError> {
        let (sender, receiver) = mpsc::channel();
        tokio::spawn(async move {
            tokio::spawn(async move { sender.send(()) });
            compute(bytes, || receiver.recv_timeout(std::time::Duration::from_secs(2)))
        })
        .await
        .unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_beside_large_work() {
        assert!(wait_for_another_task(LARGE).await.is_ok());
        assert!(wait_for_another_task(LARGE - 1).await.is_err(), "small work stays on its worker");
    }
}
