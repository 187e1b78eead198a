//! Logs, and traces: the steps of a request, exported to a collector over OTLP (HTTP, protobuf).
//!
//! Tracing is off unless `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Only then are the steps spans: a disabled callsite costs a
//! comparison. A batch serves many requests; its transaction belongs to the first of them and is linked to the others.

use std::io::{IsTerminal, Stderr};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use tracing_subscriber::layer::{Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Target of the spans that are steps of a request.
pub const STEP: &str = "rowlock_step";
/// Crates of the server: their log lines belong to the span in which they are written.
const CRATES: [&str; 11] = [
    "platform",
    "rowlock_http",
    "payments",
    "tickets",
    "catalogue",
    "identity",
    "seats",
    "admission",
    "selling",
    "backoffice",
    "rowlock",
];
/// Service name in the collector, unless `OTEL_SERVICE_NAME` gives another.
const SERVICE: &str = "rowlock";
/// Variables with the collector's address.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
/// `json` has every line of the log written as an object.
const LOG_FORMAT: &str = "LOG_FORMAT";
/// Deadline of exporting a batch of spans; after it the batch is lost.
const EXPORT_DEADLINE: Duration = Duration::from_secs(10);
/// Deadline of the flush when the server stops.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// The header of the W3C's Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Set when spans are exported.
static ON: OnceLock<()> = OnceLock::new();

/// The exporter to flush before the process ends.
#[derive(Debug, Default)]
pub struct Traces(Option<SdkTracerProvider>);

/// Starts logging, and tracing if `traced` and the environment names a collector. Call it once per process.
///
/// # Errors
/// When the collector's settings cannot be used.
pub fn begin(traced: bool) -> anyhow::Result<Traces> {
    let given = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let parts: Vec<&str> = given.split(',').filter(|part| !part.is_empty()).collect();
    let wanted = if parts.is_empty() { "info".to_owned() } else { parts.join(",") };
    let provider = if traced { provider()? } else { None };
    // Filters by module, the usual case, are looked up in a table. Filters on spans and fields check every span, under a
    // lock.
    match wanted.parse::<Targets>() {
        Ok(levels) => begin_with(levels, provider),
        Err(_) => begin_with(EnvFilter::try_new(&wanted).unwrap_or_else(|_| EnvFilter::new("info")), provider),
    }
}

fn begin_with<F>(filter: F, provider: Option<SdkTracerProvider>) -> anyhow::Result<Traces>
where
    F: Layer<Registry> + Filter<Registry> + Send + Sync + 'static,
{
    let as_json = std::env::var(LOG_FORMAT).is_ok_and(|format| format == "json");
    let Some(provider) = provider else {
        let filtered = tracing_subscriber::registry().with(filter);
        if as_json {
            filtered.with(lines().json()).init();
        } else {
            filtered.with(lines()).init();
        }
        return Ok(Traces(None));
    };
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if as_json { lines().json().boxed() } else { lines().boxed() };
    let crates = CRATES.map(|name| (name, Level::INFO));
    let steps = Targets::new().with_target(STEP, Level::DEBUG).with_targets(crates);
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE)).with_location(false);
    let layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> =
        vec![lines.with_filter(filter).boxed(), spans.with_filter(steps).boxed()];
    tracing_subscriber::registry().with(layers).init();
    let _first = ON.set(());
    Ok(Traces(Some(provider)))
}

/// The log layer; coloured on a terminal unless `NO_COLOR` is set (<https://no-color.org>).
fn lines<S>() -> fmt::Layer<S, DefaultFields, Format, fn() -> Stderr> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    fmt::layer().with_ansi(!is_plain && std::io::stderr().is_terminal()).with_writer(std::io::stderr as fn() -> Stderr)
}

impl Traces {
    /// Hands over what is left.
    pub async fn end(self) {
        let Some(provider) = self.0 else { return };
        // It waits, and what it waits for runs here.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_DEADLINE)).await;
        if !matches!(ended, Ok(Ok(()))) {
            eprintln!("the last spans were not handed over");
        }
    }
}

fn provider() -> anyhow::Result<Option<SdkTracerProvider>> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !ENDPOINTS.iter().any(is_set) {
        return Ok(None);
    }
    // One crypto provider for the whole process; a second installation finds it in place.
    crate::tls::use_one_provider();
    let client = reqwest::Client::builder().timeout(EXPORT_DEADLINE).build().context("a client for spans")?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(CollectorClient { client, runtime: Handle::current() })
        .build()
        .context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
    let resource = Resource::builder();
    let resource = if is_set(&"OTEL_SERVICE_NAME") { resource } else { resource.with_service_name(SERVICE) };
    let provider = SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter);
    Ok(Some(provider.build()))
}

/// The HTTP client of the exporter. The batch exporter has its own thread, and connections live in our runtime.
#[derive(Debug)]
struct CollectorClient {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let answer = client.execute(request).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}

/// Continues the sender's trace in the span of a request.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if ON.get().is_some() && headers.contains_key(TRACEPARENT) {
        // Fails for a disabled span; then there is no trace to continue.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
    }
}

/// Records method, route and status of the current request in its span.
pub fn record_response(method: &'static str, route: &'static str, status: u16) {
    if ON.get().is_some() {
        let span = Span::current();
        span.set_attribute("http.request.method", method);
        span.set_attribute("http.route", route);
        span.set_attribute("http.response.status_code", i64::from(status));
    }
}

/// The header with which another system continues the current trace.
#[must_use]
pub fn trace_parent_header() -> Option<(HeaderName, HeaderValue)> {
    ON.get()?;
    let context = Span::current().context();
    let span = context.span();
    let here = span.span_context();
    let words = format!("00-{}-{}-{:02x}", here.trace_id(), here.span_id(), here.trace_flags().to_u8());
    here.is_valid().then_some(())?;
    HeaderValue::try_from(words).ok().map(|value| (TRACEPARENT, value))
}
