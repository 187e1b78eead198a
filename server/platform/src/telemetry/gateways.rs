//! Calls to payment gateways: count, outcome and duration.

use std::time::Duration;

use domain::VariantName;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use strum::{IntoStaticStr, VariantArray};

/// Calls to a gateway, by gateway, operation and outcome.
const CALLS: &str = "rowlock_gateway_calls_total";
/// Duration of the calls, by gateway and operation; includes retries and the wait for a connection.
const DURATION: &str = "rowlock_gateway_call_duration_seconds";

/// A kind of call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GatewayOperation {
    /// Read the fingerprint of the card behind a token.
    Instrument,
    /// Charge a booking.
    Charge,
    /// Read the status of a payment.
    Status,
    /// Void the payment of a booking.
    Void,
    /// Refund money.
    Refund,
    /// Read a page of the ledger.
    Ledger,
}

/// The outcome of a call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GatewayOutcome {
    /// The gateway answered; a declined card is an answer.
    Answered,
    /// The gateway refused the call.
    Refused,
    /// The call was not sent: breaker open, no listener, or all connections busy.
    #[strum(serialize = "not_taken")]
    NotSent,
    /// No usable answer.
    Unreachable,
}

pub(super) fn describe() {
    describe_counter!(
        CALLS,
        Unit::Count,
        "Calls to gateways: answered, refused, not_taken (breaker open or no listener), unreachable (no answer)."
    );
    describe_histogram!(DURATION, Unit::Seconds, "From a question to a gateway to its answer, all tries included.");
}

/// Registers the series of a gateway as zero before its first call.
pub fn expect_gateway(gateway: &'static str) {
    for operation in GatewayOperation::VARIANTS {
        for outcome in GatewayOutcome::VARIANTS {
            counter!(CALLS, "gateway" => gateway, "question" => operation.as_str(), "outcome" => outcome.as_str())
                .increment(0);
        }
        let _registered = histogram!(DURATION, "gateway" => gateway, "question" => operation.as_str());
    }
}

/// Counts a call to a gateway and records its duration.
pub fn gateway_call(gateway: &'static str, operation: GatewayOperation, outcome: GatewayOutcome, took: Duration) {
    counter!(CALLS, "gateway" => gateway, "question" => operation.as_str(), "outcome" => outcome.as_str()).increment(1);
    histogram!(DURATION, "gateway" => gateway, "question" => operation.as_str()).record(took);
}
