//! Questions to payment gateways: how often, how they ended, how long they took.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

/// Calls to a gateway: gateway, question, outcome.
const CALLS: &str = "rowlock_gateway_calls_total";
/// Duration of the calls, retries and waiting for a connection included: gateway, question.
const DURATION: &str = "rowlock_gateway_call_duration_seconds";

/// A kind of call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl GatewayOperation {
    const ALL: [Self; 6] = [Self::Instrument, Self::Charge, Self::Status, Self::Void, Self::Refund, Self::Ledger];

    const fn label(self) -> &'static str {
        match self {
            Self::Instrument => "instrument",
            Self::Charge => "charge",
            Self::Status => "status",
            Self::Void => "void",
            Self::Refund => "refund",
            Self::Ledger => "ledger",
        }
    }
}

/// The outcome of a call to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayOutcome {
    /// There is an answer, a card that was declined included.
    Answered,
    /// A definite no.
    Refused,
    /// Not called, or the connection was refused: breaker open, no listener, all connections busy.
    NotSent,
    /// No usable answer.
    Unreachable,
}

impl GatewayOutcome {
    const ALL: [Self; 4] = [Self::Answered, Self::Refused, Self::NotSent, Self::Unreachable];

    const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::NotSent => "not_taken",
            Self::Unreachable => "unreachable",
        }
    }
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
    for question in GatewayOperation::ALL {
        for outcome in GatewayOutcome::ALL {
            counter!(CALLS, "gateway" => gateway, "question" => question.label(), "outcome" => outcome.label())
                .increment(0);
        }
        let _registered = histogram!(DURATION, "gateway" => gateway, "question" => question.label());
    }
}

/// Counts a question to a gateway.
pub fn gateway_call(gateway: &'static str, question: GatewayOperation, outcome: GatewayOutcome, took: Duration) {
    counter!(CALLS, "gateway" => gateway, "question" => question.label(), "outcome" => outcome.label()).increment(1);
    histogram!(DURATION, "gateway" => gateway, "question" => question.label()).record(took);
}
