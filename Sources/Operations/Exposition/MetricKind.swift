/// The kinds of metric that are exported. There are no summaries: their quantiles cannot be added up over processes.
enum MetricKind: String, Sendable {
  case counter
  case gauge
  case histogram
}
