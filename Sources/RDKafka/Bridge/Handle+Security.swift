import CRDKafka
import Glibc
import Synchronization

extension Handle {
  /// Sets the user name and password for the next connections.
  func setCredentials(user: String, password: String) throws(RDKafkaError) {
    guard let error = unsafe rd_kafka_sasl_set_credentials(pointer, user, password) else { return }
    defer { unsafe rd_kafka_error_destroy(error) }
    throw RDKafkaError(code: .configuration, message: unsafe String(cString: rd_kafka_error_string(error)))
  }

  /// Supplies the token that librdkafka has asked for, or the reason why there is none.
  ///
  /// A token that librdkafka rejects counts as none: it asks again within ten seconds.
  func supply(_ token: Result<KafkaToken, any Error>) {
    switch token {
    case .success(let token):
      var text = [CChar](repeating: 0, count: 512)
      var extensions: [UnsafePointer<CChar>?] = unsafe []
      for (name, value) in token.extensions {
        unsafe extensions.append(UnsafePointer(strdup(name)))
        unsafe extensions.append(UnsafePointer(strdup(value)))
      }
      defer {
        for index in unsafe extensions.indices { unsafe free(UnsafeMutableRawPointer(mutating: extensions[index])) }
      }
      let status = unsafe extensions.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_oauthbearer_set_token(
          pointer, token.value, token.expiresAtMilliseconds, token.principal, buffer.baseAddress, buffer.count, &text,
          text.count)
      }
      if status != RD_KAFKA_RESP_ERR_NO_ERROR {
        // The reason names the faulty part and does not quote the token.
        _ = unsafe rd_kafka_oauthbearer_set_token_failure(pointer, text)
      }
    case .failure(let error):
      _ = unsafe rd_kafka_oauthbearer_set_token_failure(pointer, "\(error)")
    }
  }
}

/// Answers one handle's requests for tokens. librdkafka keeps a reference until the handle is destroyed.
final class TokenRequests: Sendable {
  private struct WeakHandle: Sendable {
    weak var handle: Handle?
  }

  private let source: any KafkaTokenSource
  private let handle = Mutex(WeakHandle())

  init(source: any KafkaTokenSource) { self.source = source }

  /// Installs the callback, which carries an owned reference to this object as librdkafka's opaque.
  ///
  /// The returned reference must be released after the handle has been destroyed, or if it was not created.
  func install(on configuration: OpaquePointer) -> Unmanaged<TokenRequests> {
    let reference = unsafe Unmanaged.passRetained(self)
    unsafe rd_kafka_conf_set_opaque(configuration, reference.toOpaque())
    // The callback runs on a thread of librdkafka's own instead of in a poll: some handles are never polled.
    unsafe rd_kafka_conf_enable_sasl_queue(configuration, 1)
    unsafe rd_kafka_conf_set_oauthbearer_token_refresh_cb(configuration) { _, _, opaque in
      guard let opaque = unsafe opaque else { return }
      unsafe Unmanaged<TokenRequests>.fromOpaque(opaque).takeUnretainedValue().answer()
    }
    return unsafe reference
  }

  /// Begins to answer. Requests made before are answered now.
  func begin(for handle: Handle) throws(RDKafkaError) {
    self.handle.withLock { $0.handle = handle }
    guard let error = unsafe rd_kafka_sasl_background_callbacks_enable(handle.pointer) else { return }
    defer { unsafe rd_kafka_error_destroy(error) }
    throw RDKafkaError(code: .configuration, message: unsafe String(cString: rd_kafka_error_string(error)))
  }

  /// Fetches a token without blocking librdkafka's thread.
  private func answer() {
    Task { [source, weak handle = handle.withLock(\.handle)] in
      let token: Result<KafkaToken, any Error>
      do { token = .success(try await source.token()) } catch { token = .failure(error) }
      handle?.supply(token)
    }
  }
}
