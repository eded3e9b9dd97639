import CRDKafka
import Synchronization

/// Whether the member is joining its group again and does not know the new generation yet.
///
/// Meanwhile other requests to the coordinator wait behind the one to join, on the only connection that librdkafka has
/// to it, and then arrive with the old generation. If the coordinator refuses a commit for that reason, librdkafka
/// gives up all partitions as lost (before 2.10, librdkafka#4908). Its automatic commits avoid that time;
/// ``InterimOffsets`` take the place of those of an application.
///
/// An interceptor sees the requests on the wire: the member joins from the request to join until the answer that has
/// its assignment. A request that is not answered is repeated.
final class JoinState: Sendable {
  /// The protocol's numbers of the two requests.
  private static let (joinGroup, syncGroup): (Int16, Int16) = (11, 14)
  private let joins = Atomic(false)

  /// Whether a commit must not be sent now.
  var isJoining: Bool { joins.load(ordering: .acquiring) }

  /// Notes that a request has been sent.
  func sent(_ request: Int16) {
    if request == Self.joinGroup { joins.store(true, ordering: .releasing) }
  }

  /// Notes that a request has been answered.
  func answered(_ request: Int16) {
    if request == Self.syncGroup { joins.store(false, ordering: .releasing) }
  }

  /// Installs the interceptor, which owns a reference to this object.
  ///
  /// The returned reference must be released after the handle has been destroyed, or if it was not created.
  func install(on configuration: OpaquePointer) -> Unmanaged<JoinState> {
    let reference = unsafe Unmanaged.passRetained(self)
    // It would only fail for a second interceptor of this name.
    _ = unsafe rd_kafka_conf_interceptor_add_on_new(
      configuration, "joins",
      { handle, _, opaque, _, _ in
        // On the threads of the brokers, which must not be blocked.
        _ = unsafe rd_kafka_interceptor_add_on_request_sent(
          handle, "joins",
          { _, _, _, _, request, _, _, _, opaque in
            unsafe JoinState.of(opaque)?.sent(request)
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, opaque)
        return unsafe rd_kafka_interceptor_add_on_response_received(
          handle, "joins",
          { _, _, _, _, request, _, _, _, _, error, opaque in
            if error == RD_KAFKA_RESP_ERR_NO_ERROR { unsafe JoinState.of(opaque)?.answered(request) }
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, opaque)
      }, reference.toOpaque())
    return unsafe reference
  }

  private static func of(_ opaque: UnsafeMutableRawPointer?) -> JoinState? {
    guard let opaque = unsafe opaque else { return nil }
    return unsafe Unmanaged<JoinState>.fromOpaque(opaque).takeUnretainedValue()
  }
}
