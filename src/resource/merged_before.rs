//! What was there before us, where a later declaration of a resource touches more than the first: a
//! watchdog of a port, a setting of firmware, a drop-in of a unit that came later.

use serde_json::Value;

/// What was there before our first change of each field: of entries and fields that the first
/// resource did not touch it is what is there now.
pub fn merge_before_values(first: &Value, now: &Value) -> Value {
    let (Value::Object(first), Value::Object(now)) = (first, now) else {
        return first.clone();
    };
    let mut all = first.clone();
    for (row, fields) in now {
        match (all.get_mut(row), fields) {
            (Some(Value::Object(known)), Value::Object(fields)) => {
                for (name, value) in fields {
                    known.entry(name).or_insert_with(|| value.clone());
                }
            }
            (Some(_), _) => {}
            (None, fields) => drop(all.insert(row.clone(), fields.clone())),
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_first_resource_did_not_touch_is_remembered_as_it_is_now() {
        let first = json!({ "QUEUE|Ethernet0|3": { "wred_profile": "AZURE" }, "PORT_QOS_MAP|Ethernet0": { "pfc_enable": "3,4" } });
        let now = json!({
            "QUEUE|Ethernet0|3": { "wred_profile": "railwright" },
            "QUEUE|Ethernet0|4": { "wred_profile": "AZURE" },
            "PORT_QOS_MAP|Ethernet0": { "pfc_enable": "3", "pfcwd_sw_enable": "4" },
            "PFC_WD|Ethernet0": { "action": null },
        });
        let all = json!({
            "QUEUE|Ethernet0|3": { "wred_profile": "AZURE" },
            "QUEUE|Ethernet0|4": { "wred_profile": "AZURE" },
            "PORT_QOS_MAP|Ethernet0": { "pfc_enable": "3,4", "pfcwd_sw_enable": "4" },
            "PFC_WD|Ethernet0": { "action": null },
        });
        assert_eq!(merge_before_values(&first, &now), all);
        assert_eq!(merge_before_values(&all, &first), all);
        // What could not be read then is not made up now.
        assert_eq!(merge_before_values(&Value::Null, &now), Value::Null);
    }
}
