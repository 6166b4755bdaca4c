//! The fields of a struct of settings, and their values as the documentation writes them.

use std::fmt::Debug;
use std::time::Duration;

/// Names and values, as `Debug` prints them.
pub(super) fn fields(settings: &impl Debug) -> Vec<(String, String)> {
    let text = format!("{settings:?}");
    let (_, inside) = text.split_once(" { ").unwrap();
    let inside = inside.strip_suffix(" }").unwrap();
    let fields = inside
        .split(", ")
        .map(|field| field.split_once(": ").unwrap());
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// `65536` is `65,536`, or `64 KiB` where bytes are meant; `Some(60s)` is `60 s`.
pub(super) fn shown(name: &str, value: &str) -> String {
    if value == "None" || value == format!("{:?}", Duration::MAX) {
        return "none".to_owned();
    }
    let value = value.strip_prefix("Some(").unwrap_or(value);
    let value = value.strip_suffix(')').unwrap_or(value);
    if let Some(millis) = value.strip_suffix("ms") {
        return format!("{millis} ms");
    }
    if let Some(seconds) = value.strip_suffix('s') {
        return format!("{seconds} s");
    }
    let Ok(number) = value.parse::<u64>() else {
        return value.to_owned();
    };
    if number == u64::from(u32::MAX) {
        return "none".to_owned();
    }
    let is_size = name.ends_with("bytes") || name.contains("_buffer_") || name == "lowest_rate";
    match number {
        size if is_size && size % (1 << 30) == 0 => format!("{} GiB", size >> 30),
        size if is_size && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if is_size && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        many if many >= 1000 => format!("{},{:03}", many / 1000, many % 1000),
        few => few.to_string(),
    }
}
