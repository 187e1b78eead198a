//! The metric of shed requests.

use metrics::{Unit, counter, describe_counter};

use super::RequestClass;

/// Requests shed because answers took too long: class.
const SHED: &str = "rowlock_shed_total";

/// Describes the metric and sets it to zero.
pub fn register() {
    describe_counter!(SHED, Unit::Count, "Requests refused because answers took too long, by what people were doing.");
    for class in RequestClass::ALL {
        counter!(SHED, "class" => class.label()).increment(0);
    }
}

/// Counts a shed request.
pub(super) fn shed(class: RequestClass) {
    counter!(SHED, "class" => class.label()).increment(1);
}
