//! The size of the memory pool and the reserved part, as metrics.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Unit,
};

use super::MemoryPool;

/// Reads the pool when somebody scrapes.
pub(super) struct MemoryCollector(pub(super) MemoryPool);

impl fmt::Debug for MemoryCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryCollector")
    }
}

impl Collector for MemoryCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let all = self.0.0.ledger().all();
        let mut gauge = |name: &str, help: &str, bytes: usize| {
            let metric = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            metric.encode(encoder.encode_descriptor(name, help, Some(&Unit::Bytes), metric.metric_type())?)
        };
        gauge("memory_pool", "Size of the memory pool for requests", self.0.size())?;
        gauge("memory_reserved", "Part of the memory pool that requests hold", all.reading + all.whole)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[tokio::test]
    async fn reserved_bytes_are_shown_while_a_request_holds_them() {
        let pool = MemoryPool::default();
        let mut registry = Registry::default();
        pool.register(&mut registry);
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let held = pool.reserve(&"team".into(), 4096).await.unwrap();
        assert!(shown().contains("\nmemory_reserved_bytes 4096\n"), "{}", shown());
        assert!(shown().contains(&format!("\nmemory_pool_bytes {}\n", pool.size())), "{}", shown());
        drop(held);
        assert!(shown().contains("\nmemory_reserved_bytes 0\n"), "{}", shown());
    }
}
