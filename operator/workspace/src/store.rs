//! The rules of workspaces, over any place of files: one write of a workspace at a time, the quota, and expiry.

mod listing;
mod slots;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use self::slots::{Slot, Slots};
use crate::{
    Entry, Metrics, Quota, WorkspaceError, WorkspaceId, WriteMode,
    backend::{Backend, Usage},
    memory::Memory,
    path::StorePath,
};

/// Most files and folders of a listing.
const MAX_ENTRIES: usize = 10_000;
/// Memory of a listing for each file of a workspace: the entry with its folders, and their JSON.
const FILE_BYTES: u64 = 100 << 10;
/// Memory of the largest listing.
const LISTING_BYTES: u64 = 8 << 20;
/// Time between two notes of the last use, as a part of the time after which a workspace expires.
const MARKS_PER_EXPIRY: u32 = 20;
/// Attempts to read a file that is replaced meanwhile.
const READ_ATTEMPTS: usize = 5;
/// Longest time after a start in which nothing expires.
const GRACE: SignedDuration = SignedDuration::from_hours(24);
const LONGEST_SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// Limits of workspaces and of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all files of a workspace.
    pub quota_bytes: u64,
    /// Most files of a workspace.
    pub quota_files: u64,
    /// Most bytes of one write.
    pub write_bytes: u64,
    /// Most bytes of a file.
    pub file_bytes: u64,
    /// Most bytes of files and listings in memory at one time.
    pub memory_bytes: usize,
    /// Time without use after which a workspace is removed; `None` keeps all.
    pub expire_after: Option<Duration>,
}

/// Workspaces with their rules.
pub(crate) struct Store {
    backend: Arc<dyn Backend>,
    limits: Limits,
    slots: Slots,
    pub(crate) memory: Memory,
    pub(crate) metrics: Metrics,
    /// Nobody could use a workspace before.
    started: Timestamp,
}

impl Store {
    pub(crate) fn new(backend: Arc<dyn Backend>, limits: Limits, metrics: Metrics) -> Self {
        let memory = Memory::new(limits.memory_bytes);
        Self { backend, limits, slots: Slots::default(), memory, metrics, started: Timestamp::now() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) async fn read(
        &self,
        id: &WorkspaceId,
        path: &str,
        most: u64,
    ) -> Result<Bytes, WorkspaceError> {
        let path = StorePath::parse(path)?;
        let most = most.min(self.limits.file_bytes);
        for _ in 0..READ_ATTEMPTS {
            let file = self.backend.file(id, &path).await?;
            let Some(file) = file else { return Err(WorkspaceError::NotFound { path: path.to_string() }) };
            if file.bytes > most {
                return Err(WorkspaceError::TooLarge { path: path.to_string(), bytes: file.bytes, most });
            }
            let memory = self.memory.reserve(file.bytes).await?;
            match self.backend.read(id, &path, file.bytes).await {
                // It was replaced by a larger file, for which this memory is not enough.
                Err(WorkspaceError::TooLarge { .. }) => {}
                Err(error) => return Err(error),
                Ok(content) => {
                    self.mark_used(id, &self.slots.of(id)).await;
                    return Ok(memory.hold(content));
                }
            }
        }
        Err(WorkspaceError::unavailable(format!("{path} was replaced while it was read; try again")))
    }

    /// Writes content whose memory the caller has reserved.
    pub(crate) async fn write(
        &self,
        id: &WorkspaceId,
        path: &str,
        content: Bytes,
        mode: WriteMode,
    ) -> Result<u64, WorkspaceError> {
        let path = StorePath::parse(path)?;
        let added = content.len() as u64;
        let slot = self.slots.of(id);
        let mut known = slot.usage.lock().await;
        let before = self.backend.file(id, &path).await?;
        if before.is_some() && mode == WriteMode::Create {
            return Err(WorkspaceError::Exists { path: path.to_string() });
        }
        let old = before.as_ref().map_or(0, |file| file.bytes);
        let size = if mode == WriteMode::Append { old.saturating_add(added) } else { added };
        if size > self.limits.file_bytes {
            let most = self.limits.file_bytes;
            return Err(WorkspaceError::TooLarge { path: path.to_string(), bytes: size, most });
        }
        // Taken out: a write that fails or ends in the middle leaves a workspace that is counted again.
        let usage = match known.take() {
            Some(usage) => usage,
            None => self.backend.usage(id).await?,
        };
        let would = Usage {
            bytes: usage.bytes.saturating_sub(old).saturating_add(size),
            files: usage.files.saturating_add(u64::from(before.is_none())),
        };
        if let Err(error) = self.check_quota(&path, usage, would) {
            *known = Some(usage);
            return Err(error);
        }
        // Before the write: what has no note of its use would never expire.
        self.mark_new_use(id, &slot).await?;
        let written = self.backend.write(id, &path, content, mode, self.limits.file_bytes).await?;
        *known = (written == size).then_some(would);
        Ok(written)
    }

    /// A workspace above its quota, such as after the quota was lowered, may shrink.
    fn check_quota(&self, path: &StorePath, usage: Usage, would: Usage) -> Result<(), WorkspaceError> {
        let Limits { quota_bytes, quota_files, .. } = self.limits;
        let exceeded =
            |quota, would, most| WorkspaceError::QuotaExceeded { path: path.to_string(), quota, would, most };
        if would.bytes > quota_bytes && would.bytes > usage.bytes {
            return Err(exceeded(Quota::Bytes, would.bytes, quota_bytes));
        }
        if would.files > quota_files && would.files > usage.files {
            return Err(exceeded(Quota::Files, would.files, quota_files));
        }
        Ok(())
    }

    /// Returns the entries of a listing with the memory that is reserved for them and their JSON.
    pub(crate) async fn list(&self, id: &WorkspaceId, folder: &str) -> Result<Vec<Entry>, WorkspaceError> {
        let folder = StorePath::parse_folder(folder)?;
        let files = self.backend.files(id, folder.as_ref(), MAX_ENTRIES).await?;
        match &folder {
            Some(folder) if files.is_empty() => {
                return Err(WorkspaceError::NotFound { path: folder.to_string() });
            }
            None if files.is_empty() => return Ok(Vec::new()),
            _ => self.mark_used(id, &self.slots.of(id)).await,
        }
        listing::entries(files, folder.as_ref(), MAX_ENTRIES)
    }

    /// Returns the memory that a listing of the workspace takes at most.
    pub(crate) async fn listing_bytes(&self, id: &WorkspaceId) -> Result<u64, WorkspaceError> {
        let slot = self.slots.of(id);
        let mut known = slot.usage.lock().await;
        let usage = match *known {
            Some(usage) => usage,
            None => self.backend.usage(id).await?,
        };
        *known = Some(usage);
        Ok(usage.files.saturating_mul(FILE_BYTES).min(LISTING_BYTES))
    }

    pub(crate) async fn remove(&self, id: &WorkspaceId, path: &str) -> Result<(), WorkspaceError> {
        let path = StorePath::parse_folder(path)?;
        let slot = self.slots.of(id);
        let mut known = slot.usage.lock().await;
        *known = None;
        self.backend.remove(id, path.as_ref()).await?;
        if path.is_none() {
            self.backend.forget(id).await?;
            slot.forget_mark();
        }
        Ok(())
    }

    /// Removes the workspaces that nobody has used since the time of expiry, and returns their number.
    pub(crate) async fn expire(&self, now: Timestamp) -> Result<usize, WorkspaceError> {
        let all = self.backend.workspaces().await?;
        let mut kept = all.len();
        if let Some(after) = self.limits.expire_after.and_then(|after| SignedDuration::try_from(after).ok()) {
            // A store that was off, or whose volume was restored, gives callers a time first.
            let is_due = now.duration_since(self.started) > after.min(GRACE);
            let unused = |last: Timestamp| is_due && now.duration_since(last) > after;
            for (id, _) in all.iter().filter(|(_, last)| unused(*last)) {
                match self.expire_one(id, now).await {
                    Ok(is_removed) => kept -= usize::from(is_removed),
                    // The next sweep tries again.
                    Err(error) => warn!(%error, workspace = %id, "Workspace could not be removed"),
                }
            }
        }
        self.slots.clear_idle();
        self.metrics.workspaces(kept);
        Ok(all.len() - kept)
    }

    async fn expire_one(&self, id: &WorkspaceId, now: Timestamp) -> Result<bool, WorkspaceError> {
        let slot = self.slots.of(id);
        let mut known = slot.usage.lock().await;
        // Used after the marks were listed.
        if slot.is_marked_since(now, self.mark_interval()) {
            return Ok(false);
        }
        *known = None;
        self.backend.remove(id, None).await?;
        self.backend.forget(id).await?;
        self.metrics.expired();
        info!(workspace = %id, "Workspace expired");
        Ok(true)
    }

    /// Expires workspaces as long as the process works.
    pub(crate) async fn sweep(&self) -> Infallible {
        loop {
            if let Err(error) = self.expire(Timestamp::now()).await {
                warn!(%error, "Workspaces could not be listed");
            }
            tokio::time::sleep(self.mark_interval()).await;
        }
    }

    fn mark_interval(&self) -> Duration {
        let interval = self.limits.expire_after.map(|after| after / MARKS_PER_EXPIRY);
        interval.unwrap_or(LONGEST_SWEEP_INTERVAL).min(LONGEST_SWEEP_INTERVAL).max(Duration::from_secs(1))
    }

    async fn mark_new_use(&self, id: &WorkspaceId, slot: &Slot) -> Result<(), WorkspaceError> {
        let now = Timestamp::now();
        if !slot.is_marked_since(now, self.mark_interval()) {
            self.backend.mark_used(id).await?;
            slot.mark(now);
        }
        Ok(())
    }

    /// A read does not fail because its time cannot be noted.
    async fn mark_used(&self, id: &WorkspaceId, slot: &Slot) {
        if let Err(error) = self.mark_new_use(id, slot).await {
            warn!(%error, workspace = %id, "Use of a workspace could not be noted");
        }
    }
}
