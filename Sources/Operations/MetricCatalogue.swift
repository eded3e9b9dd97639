/// The one table of what Fanfare's metrics mean, and of the buckets of its histograms.
package enum MetricCatalogue {
  /// The help line of each metric, keyed by the name Prometheus sees.
  package static let help: [String: String] = [
    "fanfare_sends_accepted_total": "Sends answered with success, each acknowledged by Kafka first.",
    "fanfare_sends_refused_total": "Sends refused by the front end, by the code of the error.",
    "fanfare_sends_scheduled_total": "Sends that are held until their time; when they go they are accepted.",
    "fanfare_schedule_lateness_seconds":
      "Time from the moment for which a send was scheduled to Kafka's acknowledgement.",
    "fanfare_http_request_seconds":
      "Time that the front end takes for an answer, without what the network takes for request and answer.",
    "fanfare_accept_seconds": "Time from the arrival of a send to Kafka's acknowledgement.",
    "fanfare_sends_dispatched_total": "Sends whose pushes have been handed to the push services.",
    "fanfare_sends_settled_total": "Work items settled, by the state they ended in.",
    "fanfare_sends_resumed_settled_total": "Sends passed over because an earlier worker had settled them out of order.",
    "fanfare_push_outcomes_total": "Outcomes of pushes, by the service's answer.",
    "fanfare_accept_to_outcome_seconds": "Time from the acceptance of a send to the final outcome on a device.",
    "fanfare_pushes_in_flight": "Pushes handed to a push service and not answered yet.",
    "fanfare_sends_in_flight": "Sends taken from the topic and not settled yet.",
    "fanfare_push_retries_total": "Pushes sent again, by the reason of the failure before.",
    "fanfare_broadcast_pages_total": "Pages of broadcasts that were settled or put off.",
    "fanfare_pushes_deferred_total": "Pushes put off through a retry topic.",
    "fanfare_retries_released_total": "Records of the retry topics whose time has come.",
    "fanfare_retries_waiting": "Records of the retry topics that a worker holds until their time has come.",
    "fanfare_dead_letters_total": "Records set aside in the dead-letter topic, by reason.",
    "fanfare_devices_dropped_total": "Registrations removed because the push service called the device gone.",
    "fanfare_registrations_expired_total": "Registrations removed because their apps were not heard of for too long.",
    "fanfare_consumer_lag_records": "Records of a partition that wait behind the last one consumed.",
    "fanfare_consumer_lag_seconds":
      "Age of the oldest record of a partition that is not done with; of one that is not read yet, the most that it can be.",
    "fanfare_registry_lookup_seconds": "Time of one batched look-up in the device registry.",
    "fanfare_push_connections": "Open connections to a push service.",
    "fanfare_push_streams": "Open HTTP/2 streams to a push service.",
    "fanfare_push_credential_expiry_timestamp_seconds": "When the credential for a push service expires, as Unix time.",
    "fanfare_circuit_state": "State of the circuit to a push service: 0 closed, 1 half-open, 2 open.",
    "fanfare_ledger_records_total": "Records that the ledger has recorded, by topic.",
    "fanfare_ledger_duplicates_total":
      "Status records whose work item was already on record, and which changed nothing.",
    "fanfare_ledger_undecodable_total": "Records that the ledger could not read and passed over, by topic.",
    "fanfare_ledger_batch_seconds": "Time of one transaction of the ledger.",
    "fanfare_ledger_store_failures_total": "Transactions of the ledger that failed and were tried again.",
    "fanfare_build_info": "What the program was made of; always 1.",
    "fanfare_metric_series_overflow_total":
      "Requests for one series more than a metric may have; they share one series.",
    "fanfare_metrics_refused_total":
      "Metrics not exported, because their name is taken by another kind or there are too many.",
    "process_cpu_seconds_total": "Time that the process has spent on processors, in user and system mode.",
    "process_resident_memory_bytes": "Memory of the process that is in RAM.",
    "process_virtual_memory_bytes": "Address space of the process.",
    "process_start_time_seconds": "When the process started, as Unix time.",
    "process_open_fds": "Open file descriptors.",
    "process_max_fds": "The most file descriptors the process may have open.",
  ]

  /// Upper bounds for times in seconds, from a local call to a push that waited for a busy service.
  package static let secondsBuckets: [Double] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  ]

  /// Upper bounds for everything that is not a time.
  package static let valueBuckets: [Double] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000,
  ]

  /// Upper bounds of metrics that the general ones do not suit.
  package static let buckets: [String: [Double]] = [
    // A look-up in SQLite takes microseconds, one in PostgreSQL a round trip.
    "fanfare_registry_lookup_seconds": [
      0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
      5,
    ]
  ]
}
