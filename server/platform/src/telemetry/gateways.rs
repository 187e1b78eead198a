//! Questions to payment gateways: how often, how they ended, how long they took.

use std::time::Duration;

use domain::VariantName;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use strum::{IntoStaticStr, VariantArray};

/// Calls to a gateway: gateway, question, outcome.
const CALLS: &str = "rowlock_gateway_calls_total";
/// Duration of the calls, retries and waiting for a connection included: gateway, question.
const DURATION: &str = "rowlock_gateway_call_duration_seconds";

/// A kind of call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GatewayOperation {
    /// Whose instrument a token is.
    Instrument,
    /// For the money of a booking.
    Charge,
    /// The status of a payment.
    Status,
    /// Never to charge a booking.
    Void,
    /// To send money back.
    Refund,
    /// For a page of its ledger.
    Ledger,
}

/// The outcome of a call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum GatewayOutcome {
    /// There is an answer, a card that was declined included.
    Answered,
    /// A definite no.
    Refused,
    /// Not called, or the connection was refused: breaker open, no listener, all connections busy.
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
    for question in GatewayOperation::VARIANTS {
        for outcome in GatewayOutcome::VARIANTS {
            counter!(CALLS, "gateway" => gateway, "question" => question.as_str(), "outcome" => outcome.as_str())
                .increment(0);
        }
        let _registered = histogram!(DURATION, "gateway" => gateway, "question" => question.as_str());
    }
}

/// Counts a question to a gateway.
pub fn gateway_call(gateway: &'static str, question: GatewayOperation, outcome: GatewayOutcome, took: Duration) {
    counter!(CALLS, "gateway" => gateway, "question" => question.as_str(), "outcome" => outcome.as_str()).increment(1);
    histogram!(DURATION, "gateway" => gateway, "question" => question.as_str()).record(took);
}
