//! Frames on a link, as both sides write them.

use std::{io, pin::pin};

use futures::FutureExt as _;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

/// Frames that wait to be written on a link.
pub(crate) const QUEUED_FRAMES: usize = 16;

/// Room for one read of a link.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Writes frames until there are no senders or `stop` is over, then those that are queued, and ends the direction.
pub(crate) async fn write_frames(
    mut stream: impl AsyncWrite + Unpin,
    queued: &mut mpsc::Receiver<Vec<u8>>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut stop = pin!(stop.fuse());
    loop {
        let frame = tokio::select! {
            frame = queued.recv() => frame,
            () = &mut stop => {
                queued.close();
                continue;
            }
        };
        let Some(frame) = frame else { break };
        stream.write_all(&frame).await?;
        // Frames that wait already go out together.
        while let Ok(frame) = queued.try_recv() {
            stream.write_all(&frame).await?;
        }
        stream.flush().await?;
    }
    stream.shutdown().await
}
