//! The operator's metrics, as Prometheus would read them.

use std::env;

use anyhow::{Context as _, Result};
use kube::{Client, Config, ResourceExt, api::ListParams, core::Request};

use crate::operator;

const PORT: u16 = 8080;

/// All metrics at one moment.
#[derive(Clone, Debug)]
pub struct Metrics(String);

impl Metrics {
    /// Reads them, through the API server where the operator is a pod.
    pub async fn scrape(client: &Client) -> Result<Self> {
        if let Ok(url) = env::var("SKILLET_METRICS_URL") {
            let direct =
                Client::try_from(Config::new(url.parse().with_context(|| format!("{url} is no URL"))?))?;
            return read(&direct, "/metrics").await.with_context(|| format!("could not read {url}"));
        }
        let pod = operator::pod(client).await?;
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{PORT}/proxy/metrics");
        read(client, &path).await.context("could not read the operator's metrics")
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Sum of a counter over all series that have these labels; 0 where there is none yet.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_wanted = |series: &str| {
            let (metric, rest) = series.split_once('{').unwrap_or((series, ""));
            metric == name && labels.iter().all(|(key, value)| rest.contains(&format!("{key}=\"{value}\"")))
        };
        let series = self.0.lines().filter(|line| !line.starts_with('#'));
        let values = series.filter_map(|line| line.rsplit_once(' ')).filter(|(series, _)| is_wanted(series));
        values.filter_map(|(_, value)| value.parse::<f64>().ok()).sum()
    }
}

async fn read(client: &Client, path: &str) -> Result<Metrics> {
    let mut request = Request::new("/").list(&ListParams::default())?;
    *request.uri_mut() = path.parse()?;
    Ok(Metrics(client.request_text(request).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_with_the_labels_are_summed() {
        let metrics = Metrics(
            "# HELP runs_total Runs\nruns_total{phase=\"Failed\",reason=\"A\"} 2\nruns_total{phase=\"Failed\",reason=\"B\"} 3\nother 9\n".into(),
        );
        assert!((metrics.sum("runs_total", &[("phase", "Failed")]) - 5.0).abs() < f64::EPSILON);
        assert!(
            (metrics.sum("runs_total", &[("reason", "A"), ("phase", "Failed")]) - 2.0).abs() < f64::EPSILON
        );
        assert!((metrics.sum("other", &[]) - 9.0).abs() < f64::EPSILON);
        assert!(metrics.sum("runs", &[]).abs() < f64::EPSILON);
    }
}
