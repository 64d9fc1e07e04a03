//! A runtime beside that of the measurement, for what is another process in the product.

use std::io;

use tokio::{runtime::Runtime, task::JoinHandle};

/// A runtime with threads of its own. It ends when this is dropped, and what runs on it with it.
pub(crate) struct SeparateRuntime(Option<Runtime>);

impl SeparateRuntime {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self(Some(Runtime::new()?)))
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> JoinHandle<io::Result<T>> {
        let runtime = self.0.as_ref().expect("it is taken when it is dropped");
        runtime.spawn(work)
    }
}

impl Drop for SeparateRuntime {
    fn drop(&mut self) {
        // To wait for its threads would block one of the measurement.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
