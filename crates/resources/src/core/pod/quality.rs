//! The quality of service class of a pod.

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::quantity::Quantity;
use serde_json::Value;

/// Resources that decide the class.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Returns the class: `Guaranteed` if every container has limits of CPU and memory that equal its requests,
/// `BestEffort` if none has requests or limits of them, else `Burstable`. Pod-level resources count instead of those of
/// the containers, if there are any, even empty ones.
pub fn class(pod: &Value) -> &'static str {
    let whole = get(pod, "spec").filter(|spec| spec["resources"].is_object());
    let each = list(pod, "spec.containers")
        .iter()
        .chain(list(pod, "spec.initContainers"))
        .filter(|_| whole.is_none());
    let containers = whole.into_iter().chain(each);
    let mut any = false;
    let mut guaranteed = true;
    for container in containers {
        for resource in COUNTED {
            let of = |which: &str| -> Option<Quantity> {
                let path = format!("resources.{which}.{resource}");
                let value = get(container, &path)?;
                let number = value.as_number().map(ToString::to_string);
                let text = number.unwrap_or_else(|| text(container, &path).to_owned());
                text.parse().ok().filter(|it: &Quantity| it.is_positive())
            };
            let (request, limit) = (of("requests"), of("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        assert_eq!(class(&pod(json!({}))), "BestEffort");
        assert_eq!(
            class(&pod(json!({"requests": {"nvidia.com/gpu": "1"}}))),
            "BestEffort"
        );
        assert_eq!(
            class(&pod(json!({"requests": {"cpu": "100m"}}))),
            "Burstable"
        );
        let exact = json!({"requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"cpu": "1000m", "memory": "1024Mi"}});
        assert_eq!(class(&pod(exact)), "Guaranteed");
        let more = json!({"requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"cpu": "2", "memory": "1Gi"}});
        assert_eq!(class(&pod(more)), "Burstable");
        let mut whole = pod(json!({}));
        whole["spec"]["resources"] = json!({"limits": {"cpu": "1"}});
        assert_eq!(class(&whole), "Burstable");
        let mut empty = pod(json!({"requests": {"cpu": "100m"}}));
        empty["spec"]["resources"] = json!({"requests": {}});
        assert_eq!(class(&empty), "BestEffort");
    }
}
