//! The limits of one run: those of the skill, else the policy's defaults, never above the policy's maximums.

use std::{borrow::Cow, fmt, time::Duration};

use skillet_api::{
    Reason, SkillPolicySpec,
    builtin::Builtin,
    duration::SkillDuration,
    policy::LimitMaximums,
    skill::{EffectiveLimits, Limits, RetryOn, Run, Runtime},
};

use super::{ImageChoice, field_error::FieldErrors};
use crate::quantity::{cpu_millis, memory_bytes};

/// Validated limits, in which every field is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidLimits {
    pub timeout: Duration,
    pub retries: u32,
    pub retry_on: RetryOn,
    pub cpu_millis: u64,
    pub memory_bytes: u64,
    pub processes: u32,
    pub output_bytes: u32,
    /// Most runs of this skill at one time; `None` if the skill sets no limit.
    pub concurrency: Option<u32>,
}

/// Longest time of an HTTP skill that sets none, unless the policy's default is shorter.
pub(super) const HTTP_TIMEOUT: Duration = Duration::from_secs(10);
/// Least CPU with which a runner proves its isolation in time.
const MIN_CPU_MILLIS: u64 = 50;
/// Least memory in which a container, the runner and a small program fit.
const MIN_MEMORY: u64 = 8 << 20;
/// Memory, and processes and threads, of a browser whose Skill sets none, unless the policy's maximums are lower.
const BROWSER_MEMORY: &str = "1Gi";
const BROWSER_PROCESSES: u32 = 256;

/// Returns `None` only if it added an error.
pub(super) fn read(
    limits: Option<&Limits>,
    policy: &SkillPolicySpec,
    errors: &mut FieldErrors,
) -> Option<ValidLimits> {
    let unset = Limits::default();
    let limits = limits.unwrap_or(&unset);
    let [timeout, cpu, memory, processes, output_bytes] =
        choices(limits, policy).map(|choice| choice.read(errors));
    if limits.retries.is_some_and(|retries| retries > 10) {
        errors.spec("spec.limits.retries", "must be at most 10");
    }
    if limits.concurrency.is_some_and(|concurrency| !(1..=1000).contains(&concurrency)) {
        errors.spec("spec.limits.concurrency", "must be from 1 to 1000");
    }
    Some(ValidLimits {
        timeout: Duration::from_millis(timeout?),
        retries: limits.retries.unwrap_or_default(),
        retry_on: limits.retry_on.unwrap_or_default(),
        cpu_millis: cpu?,
        memory_bytes: memory?,
        processes: u32::try_from(processes?).ok()?,
        output_bytes: u32::try_from(output_bytes?).ok()?,
        concurrency: limits.concurrency,
    })
}

/// Returns the policy with the defaults of the program: a browser needs more memory and threads than other programs.
pub(super) fn policy_of<'a>(run: Option<&Run>, policy: &'a SkillPolicySpec) -> Cow<'a, SkillPolicySpec> {
    if run.and_then(|run| run.builtin) != Some(Builtin::Browser) {
        return Cow::Borrowed(policy);
    }
    let mut policy = policy.clone();
    let defaults = &mut policy.defaults;
    if memory_bytes(&defaults.memory) < memory_bytes(BROWSER_MEMORY) {
        BROWSER_MEMORY.clone_into(&mut defaults.memory);
    }
    defaults.processes = defaults.processes.max(BROWSER_PROCESSES);
    Cow::Owned(policy)
}

/// Refuses limits under which the programs of the image cannot start.
pub(super) fn check_image(limits: &ValidLimits, image: &ImageChoice, errors: &mut FieldErrors) {
    let (program, memory, least_memory, least_processes) = match image {
        ImageChoice::Runtime(Runtime::Shell | Runtime::Python) | ImageChoice::Image(_) => return,
        ImageChoice::Runtime(Runtime::Node) => ("node", "16Mi", 16 << 20, 8),
        ImageChoice::Browser => ("browser", "256Mi", 256 << 20, 128),
    };
    if limits.memory_bytes < least_memory {
        let message = format!("is too small for {program}; the least is {memory}");
        errors.spec("spec.limits.memory", message);
    }
    if limits.processes < least_processes {
        let message = format!("is too small for the threads of {program}; the least is {least_processes}");
        errors.spec("spec.limits.processes", message);
    }
}

/// Returns the limits of a run as their authors wrote them: those of the skill, else those of the policy.
pub fn effective_limits(
    run: Option<&Run>,
    limits: Option<&Limits>,
    policy: &SkillPolicySpec,
) -> EffectiveLimits {
    let policy = policy_of(run, policy);
    let (default, maximum) = (&policy.defaults, &policy.maximums);
    let text = |own: Option<&String>, default: &String, maximum: &String, read: fn(&str) -> Option<u64>| {
        own.unwrap_or(if read(default) > read(maximum) { maximum } else { default }).clone()
    };
    let own = limits.cloned().unwrap_or_default();
    let per_namespace = policy.concurrency.per_namespace;
    let timeout = default.timeout.min(maximum.timeout);
    let is_http = run.is_some_and(|run| run.http.is_some());
    let timeout = if is_http { timeout.min(SkillDuration(HTTP_TIMEOUT)) } else { timeout };
    EffectiveLimits {
        timeout: own.timeout.unwrap_or(timeout),
        cpu: text(own.cpu.as_ref(), &default.cpu, &maximum.cpu, cpu_millis),
        memory: text(own.memory.as_ref(), &default.memory, &maximum.memory, memory_bytes),
        processes: own.processes.unwrap_or(default.processes.min(maximum.processes)),
        output_bytes: own.output_bytes.unwrap_or(default.output_bytes.min(maximum.output_bytes)),
        concurrency: Some(own.concurrency.map_or(per_namespace, |own| own.min(per_namespace))),
    }
}

/// Returns the highest limits of a policy.
pub fn maximum_limits(policy: &SkillPolicySpec) -> EffectiveLimits {
    let LimitMaximums { timeout, cpu, memory, processes, output_bytes } = policy.maximums.clone();
    let concurrency = Some(policy.concurrency.per_namespace);
    EffectiveLimits { timeout, cpu, memory, processes, output_bytes, concurrency }
}

/// Returns the limits that the policy bounds, in the order of the fields.
fn choices(limits: &Limits, policy: &SkillPolicySpec) -> [LimitChoice; 5] {
    let (default, maximum) = (&policy.defaults, &policy.maximums);
    [
        LimitChoice {
            name: "timeout",
            skill: limits.timeout.map(Amount::span),
            default: Amount::span(default.timeout),
            maximum: Amount::span(maximum.timeout),
            least: 1,
            most: u64::MAX,
        },
        LimitChoice {
            name: "cpu",
            skill: limits.cpu.as_deref().map(Amount::cpu),
            default: Amount::cpu(&default.cpu),
            maximum: Amount::cpu(&maximum.cpu),
            least: MIN_CPU_MILLIS,
            most: u64::MAX,
        },
        LimitChoice {
            name: "memory",
            skill: limits.memory.as_deref().map(Amount::memory),
            default: Amount::memory(&default.memory),
            maximum: Amount::memory(&maximum.memory),
            least: MIN_MEMORY,
            most: u64::MAX,
        },
        LimitChoice {
            name: "processes",
            skill: limits.processes.map(Amount::count),
            default: Amount::count(default.processes),
            maximum: Amount::count(maximum.processes),
            least: 1,
            most: 4096,
        },
        LimitChoice {
            name: "outputBytes",
            skill: limits.output_bytes.map(Amount::count),
            default: Amount::count(default.output_bytes),
            maximum: Amount::count(maximum.output_bytes),
            least: 1,
            most: 524_288,
        },
    ]
}

/// A limit as written, and its value; `None` if the text is no amount.
struct Amount {
    value: Option<u64>,
    text: String,
}

impl Amount {
    fn span(duration: SkillDuration) -> Self {
        Self { value: u64::try_from(duration.0.as_millis()).ok(), text: duration.to_string() }
    }

    fn cpu(text: &str) -> Self {
        Self { value: cpu_millis(text), text: text.to_owned() }
    }

    fn memory(text: &str) -> Self {
        Self { value: memory_bytes(text), text: text.to_owned() }
    }

    fn count(number: u32) -> Self {
        Self { value: Some(number.into()), text: number.to_string() }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One limit of the skill, with the policy's default and maximum.
struct LimitChoice {
    name: &'static str,
    skill: Option<Amount>,
    default: Amount,
    maximum: Amount,
    /// Bounds of the CRD and of the sandbox.
    least: u64,
    most: u64,
}

impl LimitChoice {
    fn read(&self, errors: &mut FieldErrors) -> Option<u64> {
        let field = format!("spec.limits.{}", self.name);
        match self.decide() {
            Ok(value) => Some(value),
            Err((reason, message)) => {
                errors.add(reason, field, message);
                None
            }
        }
    }

    fn decide(&self) -> Result<u64, (Reason, String)> {
        let Self { name, skill, default, maximum, least, most } = self;
        let wrong = |message: String| Err((Reason::SpecInvalid, message));
        let Some(highest) = maximum.value else {
            return wrong(format!("spec.maximums.{name} of the SkillPolicy, {maximum}, cannot be read"));
        };
        let Some(asked) = skill else {
            // A default above the maximum is the policy's own contradiction, not the skill's.
            return match default.value.map(|value| value.min(highest).min(*most)) {
                Some(value) if value >= *least => Ok(value),
                _ => wrong(format!("spec.defaults.{name} of the SkillPolicy, {default}, cannot be used")),
            };
        };
        match asked.value {
            None => wrong(format!("{asked} is not an amount; {}", self.example())),
            Some(value) if value > highest => {
                let message = format!("{asked} is above the maximum of {maximum} that the SkillPolicy sets");
                Err((Reason::LimitTooHigh, message))
            }
            Some(value) if value < *least => {
                wrong(format!("{asked} is too small; the least is {}", self.least()))
            }
            Some(value) if value > *most => wrong(format!("{asked} is too large; the most is {most}")),
            Some(value) => Ok(value),
        }
    }

    fn least(&self) -> String {
        match self.name {
            "timeout" => "1ms".to_owned(),
            "cpu" => "50m".to_owned(),
            "memory" => "8Mi".to_owned(),
            _ => self.least.to_string(),
        }
    }

    fn example(&self) -> &'static str {
        match self.name {
            "cpu" => "write it like 500m, 1 or 0.5",
            "memory" => "write it like 128Mi or 1Gi",
            _ => "write a whole number",
        }
    }
}
