/// The help texts of Fanfare's metrics, and the buckets of its histograms.
package enum MetricCatalogue {
  /// The help text of each metric, by its name in Prometheus.
  package static let help: [String: String] = [
    "fanfare_sends_accepted_total": "Sends answered with success after Kafka acknowledged them.",
    "fanfare_tokens_refused_total": "Bearer tokens that were refused, by reason.",
    "fanfare_quota_refused_total": "Requests and lines of batches refused by the front end, by quota.",
    "fanfare_sends_refused_total": "Sends refused by the front end, by error code.",
    "fanfare_sends_scheduled_total":
      "Sends stored until their scheduled time. They count as accepted when they are due.",
    "fanfare_schedule_lateness_seconds": "Time from a send's scheduled time to Kafka's acknowledgement.",
    "fanfare_http_request_seconds": "Time the front end takes to answer a request, without network time.",
    "fanfare_http_server_errors_total": "Requests answered with a status of 500 or above.",
    "fanfare_accept_seconds": "Time from the arrival of a send to Kafka's acknowledgement.",
    "fanfare_sends_dispatched_total": "Sends whose pushes were handed to the push services.",
    "fanfare_sends_settled_total": "Settled work items, by final state.",
    "fanfare_sends_resumed_settled_total":
      "Sends skipped after a restart because an earlier worker had settled them out of order.",
    "fanfare_push_outcomes_total": "Outcomes of pushes, by the push service's answer.",
    "fanfare_accept_to_outcome_seconds": "Time from the acceptance of a send to the final outcome on a device.",
    "fanfare_pushes_in_flight": "Pushes handed to a push service that it has not answered yet.",
    "fanfare_worker_saturation":
      "Share of the worker's room that is taken, of records, bytes or pushes, whichever is fullest; 1 is full.",
    "fanfare_sends_in_flight": "Sends consumed from the topic that are not settled yet.",
    "fanfare_push_retries_total": "Repeated pushes, by the reason of the previous failure.",
    "fanfare_broadcast_pages_total": "Pages of broadcasts that were settled or deferred.",
    "fanfare_broadcasts_paused_total": "Broadcasts paused because too many of their pushes failed.",
    "fanfare_pushes_failed_total": "Pushes that ended without delivery although the device may still exist.",
    "fanfare_pushes_deferred_total": "Pushes deferred to a retry topic.",
    "fanfare_retries_released_total": "Records of the retry topics that became due.",
    "fanfare_retries_waiting": "Records of the retry topics that a worker holds until they are due.",
    "fanfare_ingress_total": "Sends moved from a hub's ingress topic to the sends topic.",
    "fanfare_dead_letters_total": "Records written to the dead-letter topic, by reason.",
    "fanfare_devices_dropped_total": "Registrations removed because the push service reported the device as gone.",
    "fanfare_registrations_expired_total": "Registrations removed because their apps were inactive for too long.",
    "fanfare_registrations_surplus_total":
      "Registrations removed because their users had more than registry.maximumDevicesPerUser devices.",
    "fanfare_consumer_partitions": "Partitions of a topic that this process consumes.",
    "fanfare_consumer_lag_records": "Records of a partition behind the last consumed one.",
    "fanfare_consumer_lag_seconds":
      "Age of the oldest unsettled record of a partition; an upper bound if that record is not consumed yet.",
    "fanfare_kafka_client_queued_messages":
      "Messages that a Kafka client has not sent, or whose acknowledgement it has not received.",
    "fanfare_kafka_client_connected_brokers": "Brokers that a Kafka client is connected to.",
    "fanfare_kafka_client_round_trip_seconds":
      "Round-trip time to the slowest broker of a Kafka client, 99th percentile of ten seconds.",
    "fanfare_kafka_client_sent_messages_total": "Messages that a Kafka client has sent.",
    "fanfare_kafka_client_sent_bytes_total": "Bytes of the messages that a Kafka client has sent.",
    "fanfare_kafka_client_consumed_messages_total": "Messages that a Kafka client has received.",
    "fanfare_kafka_client_consumed_bytes_total": "Bytes of the messages that a Kafka client has received.",
    "fanfare_kafka_client_errors_total":
      "Errors of sending and receiving, and timeouts of requests, of a Kafka client.",
    "fanfare_kafka_client_disconnects_total": "Connections to brokers that a Kafka client has lost.",
    "fanfare_registry_lookup_seconds": "Time of one batched lookup in the device registry.",
    "fanfare_push_connections": "Open connections to a push service.",
    "fanfare_push_streams": "Open HTTP/2 streams to a push service.",
    "fanfare_push_stream_limit": "HTTP/2 streams that a push service allows on all usable connections together.",
    "fanfare_push_requests_waiting": "Requests to a push service that wait for an HTTP/2 stream.",
    "fanfare_push_connection_events_total":
      "Connections to a push service that were opened, could not be opened (failed), ended with an error (lost), or were told to go away (goAway).",
    "fanfare_push_requests_resent_total":
      "Requests sent again because the push service guarantees that it has not processed them.",
    "fanfare_push_credential_expiry_timestamp_seconds": "Expiry of the credential for a push service, as Unix time.",
    "fanfare_sender_missing": "Whether devices of a platform are registered that the worker has no credentials for.",
    "fanfare_circuit_state": "State of the circuit breaker of a push service: 0 closed, 1 half-open, 2 open.",
    "fanfare_unregister_guard_tripped":
      "Whether removals are suspended because too many devices of a push service look gone: 0 or 1.",
    "fanfare_ledger_records_total": "Records stored by the ledger, by topic.",
    "fanfare_ledger_duplicates_total":
      "Status records without effect because their work item was already in the ledger.",
    "fanfare_ledger_undecodable_total": "Records skipped by the ledger because it cannot decode them, by topic.",
    "fanfare_ledger_batch_seconds": "Time of one transaction of the ledger.",
    "fanfare_ledger_store_failures_total": "Failed transactions of the ledger. Each is repeated.",
    "fanfare_hook_events_total": "Events of a hook: delivered, refused by it, skipped as too old, or undecodable.",
    "fanfare_hook_requests_total": "Requests to a hook, by result. A failed one is repeated.",
    "fanfare_hook_request_seconds": "Time of one request to a hook.",
    "fanfare_hook_lag_records": "Records of the status topic that a hook's group has not read yet.",
    "fanfare_hook_lag_seconds": "Age of the oldest consumed event that a hook has not received.",
    "fanfare_hook_state": "State of a hook: 0 works, 1 fails and is retried, 2 has answered 410.",
    "fanfare_spans_exported_total": "Spans of traced sends that the collector has taken.",
    "fanfare_spans_dropped_total":
      "Spans of traced sends that were dropped: the queue was full, or the collector was unavailable or refused them.",
    "fanfare_security_events_total": "Security events, also those that the security log suppressed.",
    "fanfare_http_connections": "Open connections of callers.",
    "fanfare_http_connections_closed_total":
      "Connections closed by reason: idle while others waited for a place, too many of one address, or a flood of frames.",
    "fanfare_tls_certificate_expiry_timestamp_seconds": "Expiry of the listener's certificate, as Unix time.",
    "fanfare_ready": "Whether a condition of the role's readiness is fulfilled, by check: 0 or 1.",
    "fanfare_event_loop_longest_turn_seconds":
      "The longest time, within the last minute, for which an event loop did not begin another turn.",
    "fanfare_database_bytes": "Size of a database; of a SQLite database with its log.",
    "fanfare_database_disk_free_bytes": "Free space of the file system that holds a SQLite database.",
    "fanfare_database_disk_bytes": "Size of the file system that holds a SQLite database.",
    "fanfare_build_info": "Versions of the program and its libraries; always 1.",
    "fanfare_metric_series_overflow_total": "Series beyond a metric's limit, which share one series.",
    "fanfare_metrics_refused_total":
      "Metrics not exported because their name is used by another kind or there are too many metrics.",
    "process_cpu_seconds_total": "User and system CPU time of the process.",
    "process_resident_memory_bytes": "Resident memory of the process.",
    "process_virtual_memory_bytes": "Virtual memory of the process.",
    "process_start_time_seconds": "Start time of the process, as Unix time.",
    "process_open_fds": "Open file descriptors of the process.",
    "process_max_fds": "Limit of open file descriptors of the process.",
  ]

  /// Upper bounds in seconds: from a local call to a push that waited for a busy service.
  package static let secondsBuckets: [Double] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  ]

  /// Upper bounds of values that are not times.
  package static let valueBuckets: [Double] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000,
  ]

  /// Upper bounds of single metrics.
  package static let buckets: [String: [Double]] = [
    // A lookup takes microseconds in SQLite, and a network round trip in PostgreSQL.
    "fanfare_registry_lookup_seconds": [
      0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
      5,
    ]
  ]
}
