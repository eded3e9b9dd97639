import Dispatch

/// Runs calls of librdkafka that block for an answer from a broker outside the cooperative pool, which they would
/// starve. Each such call is given a timeout of its own, so that the threads come back.
enum BlockingCalls {
  private static let queue = DispatchQueue(label: "rdkafka.blocking", attributes: .concurrent)

  /// Runs `body` on a thread that may block and returns what it returns or throws.
  static func run<Value: Sendable>(
    _ body: @escaping @Sendable () throws(RDKafkaError) -> Value
  ) async throws(RDKafkaError) -> Value {
    let result: Result<Value, RDKafkaError> = await withCheckedContinuation { continuation in
      queue.async {
        do throws(RDKafkaError) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }

  /// Runs `body` on a thread that may block; nobody waits for it.
  static func detach(_ body: @escaping @Sendable () -> Void) {
    queue.async(execute: body)
  }
}
