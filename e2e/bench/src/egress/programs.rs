//! An unmodified program in a sandbox against the same program on this machine: small requests, and much at once.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    alone, apply_client,
    beside::Beside,
    inside,
    node::{self, Usage},
    outside,
};
use crate::figure::Figure;

const ROUNDS: usize = 5;
const TRANSFERS: usize = 3;
const BYTES: u32 = 500_000_000;

/// Small requests, in three places that take turns: directly, in a runner whose stream leads straight to the broker, and in a
/// sandbox of the cluster. The ratios are of the medians of all rounds.
pub(crate) async fn requests(runner: &Path) -> anyhow::Result<Vec<Figure>> {
    alone(1, async |journeys, host| {
        let j = &journeys[0];
        apply_client(j, host, "1").await?;
        let beside = Beside::start(&j.client, runner, host).await?;
        let what = json!({ "do": "requests" });
        let (mut direct, mut short, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            short.push(beside.run(host, &what).await?);
            whole.push(inside(j, host, &what).await?);
            direct.push(outside(host, &what).await?);
        }
        let ratios = |field: &str, what: &str| {
            let [direct, short, whole] = [median(&direct, field)?, median(&short, field)?, median(&whole, field)?];
            let ratios = [short / direct, whole / direct];
            println!("{what}: {direct:.0} us directly, {short:.0} us through runner and broker ({:.2} times), {whole:.0} us with kubelet and API server between them ({:.1} times)", ratios[0], ratios[1]);
            anyhow::Ok(ratios)
        };
        let new = ratios("new", "request on a new connection, name looked up each time")?;
        ratios("resolved", "request on a new connection, name looked up once")?;
        let kept = ratios("kept", "request on a kept connection")?;
        println!("load {}", node::load());
        let requests = ROUNDS * 400;
        Ok(vec![
            Figure::lower("egress_http_ratio", new[0], 4.0, "ratio", requests),
            Figure::lower("egress_kept_ratio", kept[0], 3.0, "ratio", requests),
            Figure::lower("egress_cluster_http_ratio", new[1], 25.0, "ratio", requests),
            Figure::lower("egress_cluster_kept_ratio", kept[1], 25.0, "ratio", requests),
        ])
    })
    .await
}

/// 500 MB each way over runner, kubelet, API server, operator and broker.
pub(crate) async fn throughput() -> anyhow::Result<Vec<Figure>> {
    alone(1, async |journeys, host| {
        let j = &journeys[0];
        apply_client(j, host, "1").await?;
        let mut of_way = Vec::new();
        for (way, name) in [("down", "egress_down_mb_s"), ("up", "egress_up_mb_s")] {
            let what = json!({ "do": way, "bytes": BYTES });
            let mut runs = Vec::new();
            for _ in 0..TRANSFERS {
                let usage = Usage::begin();
                let ended = inside(j, host, &what).await?;
                println!("{way}: {ended}; seconds of a core: {}; load {}", usage.end().await?, node::load());
                runs.push(ended);
            }
            let speed = f64::from(BYTES) / 1e6 / median(&runs, "seconds")?;
            let direct = f64::from(BYTES) / 1e6 / median(&[outside(host, &what).await?], "seconds")?;
            println!("{way}: {speed:.0} MB/s, directly {direct:.0} MB/s");
            of_way.push(Figure::higher(name, speed, 100.0, "MB/s", TRANSFERS));
        }
        let slower = of_way.iter().map(|figure| figure.value).fold(f64::INFINITY, f64::min);
        of_way.push(Figure::higher("egress_throughput_mb_s", slower, 100.0, "MB/s", TRANSFERS));
        Ok(of_way)
    })
    .await
}

/// The median of a number of several runs' outputs.
fn median(outputs: &[Value], field: &str) -> anyhow::Result<f64> {
    let mut numbers: Vec<f64> = outputs.iter().filter_map(|output| output[field].as_f64()).collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.get(numbers.len().saturating_sub(1) / 2);
    middle.copied().with_context(|| format!("the client does not tell {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_a_field_is_one_of_its_values() {
        let outputs = [json!({ "a": 3.0 }), json!({ "a": 1 }), json!({ "a": 2 })];
        assert!((median(&outputs, "a").unwrap() - 2.0).abs() < f64::EPSILON);
        assert_eq!(median(&outputs, "b").unwrap_err().to_string(), "the client does not tell b");
    }
}
