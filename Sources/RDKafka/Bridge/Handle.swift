import CRDKafka
import Logging
import Synchronization

/// Owns one `rd_kafka_t`.
/// It is destroyed on a thread of its own when the last reference is released.
///
/// Unchecked: the pointer never changes, and librdkafka's functions on it may be called from any thread.
@safe final class Handle: @unchecked Sendable {
  enum Kind {
    case producer, consumer
  }

  let pointer: OpaquePointer
  /// Whether destroying the handle could abort the process now; see
  /// ``Workarounds/destroyingJoiningMemberAborts``. Such a handle is leaked with its threads.
  let mustLeak = Atomic(false)
  /// The object that answers librdkafka's requests for tokens; nil without OAUTHBEARER.
  private let tokenRequests: Unmanaged<TokenRequests>?
  private let joinState: Unmanaged<JoinState>?
  private let statistics: KafkaStatisticsObserver?

  /// Creates a handle.
  ///
  /// - Parameters:
  ///   - kind: Whether it produces or consumes.
  ///   - properties: Its settings.
  ///   - events: The `RD_KAFKA_EVENT_*` that are put on the handle's queue.
  ///   - logsToQueue: Whether librdkafka's log lines come as events; otherwise they are discarded.
  ///   - joinState: Is told when the handle joins its group.
  /// - Throws: `configuration`, naming the key concerned.
  init(
    kind: Kind, properties: PropertySet, events: Int32, logsToQueue: Bool = true, joinState: JoinState? = nil
  ) throws(RDKafkaError) {
    // Read before the properties are, so that a change in between is noticed below.
    var credentials: (password: KafkaPassword, used: (user: String, password: String))?
    if case .password(_, let password) = properties.security?.authentication {
      credentials = (password, password.current)
    }
    let configuration = try unsafe Self.makeConfiguration(properties)
    statistics = properties.statistics
    unsafe rd_kafka_conf_set_events(configuration, events | (statistics == nil ? 0 : RD_KAFKA_EVENT_STATS))
    var requests: TokenRequests?
    if case .token(let source) = properties.security?.authentication { requests = TokenRequests(source: source) }
    unsafe tokenRequests = unsafe requests?.install(on: configuration)
    unsafe self.joinState = unsafe joinState?.install(on: configuration)
    if !logsToQueue {
      // The queue of such a handle is not polled, so log lines would accumulate there.
      _ = unsafe rd_kafka_conf_set(configuration, "log.queue", "false", nil, 0)
      unsafe rd_kafka_conf_set_log_cb(configuration, nil)
    }
    var text = [CChar](repeating: 0, count: 512)
    guard
      let pointer = unsafe rd_kafka_new(
        kind == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, configuration, &text, text.count)
    else {
      unsafe rd_kafka_conf_destroy(configuration)
      unsafe tokenRequests?.release()
      unsafe self.joinState?.release()
      throw RDKafkaError(code: .configuration, message: Self.string(text))
    }
    unsafe self.pointer = unsafe pointer
    if logsToQueue { unsafe rd_kafka_set_log_queue(pointer, nil) }
    try requests?.begin(for: self)
    if let credentials { try credentials.password.attach(self, used: credentials.used) }
  }

  deinit {
    guard !mustLeak.load(ordering: .acquiring) else { return }
    // Destroying joins librdkafka's threads, which can take a while or, before 2.4, hang. It must not block the thread
    // that releases the last reference. A consumer that wants to leave its group has done so before.
    let doomed = unsafe Doomed(pointer: pointer, tokenRequests: tokenRequests, joinState: joinState)
    do {
      try DedicatedThread.start(name: "rdk-destroy") { doomed.destroy() }
    } catch {
      doomed.destroy()
    }
  }

  /// Unchecked: handed from one thread to exactly one other.
  @safe private struct Doomed: @unchecked Sendable {
    let pointer: OpaquePointer
    let tokenRequests: Unmanaged<TokenRequests>?
    let joinState: Unmanaged<JoinState>?

    func destroy() {
      unsafe rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
      // librdkafka's threads have ended, so no callback refers to them any more.
      unsafe tokenRequests?.release()
      unsafe joinState?.release()
    }
  }

  /// Sets all properties; errors name the key, never the value.
  private static func makeConfiguration(_ properties: PropertySet) throws(RDKafkaError) -> OpaquePointer {
    let reserved = properties.reserved.union(PropertySet.reservedByAll)
    if let key = properties.further.keys.sorted().first(where: reserved.contains) {
      throw RDKafkaError(
        code: .configuration, message: "the property '\(key)' cannot be set: the client relies on its own value")
    }
    guard let configuration = unsafe rd_kafka_conf_new() else {
      throw RDKafkaError(code: .configuration, message: "out of memory")
    }
    do throws(RDKafkaError) {
      for property in properties.required { try unsafe set(property, on: configuration) }
      for property in properties.ifSupported {
        _ = unsafe rd_kafka_conf_set(configuration, property.key, property.value, nil, 0)
      }
      for (key, value) in properties.further { try unsafe set(Property(key, value), on: configuration) }
      for property in properties.security?.properties ?? [] { try unsafe set(property, on: configuration) }
    } catch {
      unsafe rd_kafka_conf_destroy(configuration)
      throw error
    }
    return unsafe configuration
  }

  private static func set(_ property: Property, on configuration: OpaquePointer) throws(RDKafkaError) {
    switch unsafe rd_kafka_conf_set(configuration, property.key, property.value, nil, 0) {
    case RD_KAFKA_CONF_OK: return
    case RD_KAFKA_CONF_UNKNOWN:
      throw RDKafkaError(code: .configuration, message: "librdkafka does not know the property '\(property.key)'")
    default:
      throw RDKafkaError(
        code: .configuration, message: "librdkafka does not accept the value of the property '\(property.key)'")
    }
  }

  /// The text in a C buffer.
  static func string(_ buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Reports the statistics of an event of type STATS.
  func report(statistics event: OpaquePointer) {
    guard let text = unsafe rd_kafka_event_stats(event) else { return }
    statistics?(unsafe Array(String(cString: text).utf8))
  }

  /// The handle's fatal error; nil when it has none.
  var fatalError: RDKafkaError? {
    var text = [CChar](repeating: 0, count: 512)
    let error = unsafe rd_kafka_fatal_error(pointer, &text, text.count)
    guard error != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return RDKafkaError(code: .fatal, message: Self.string(text), number: error.rawValue, isFatal: true)
  }

  #if DEBUG
  /// Makes the handle fatally fail, for tests.
  func provokeFatalError() {
    _ = unsafe rd_kafka_test_fatal_error(
      pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "provoked by a test")
  }
  #endif
}
