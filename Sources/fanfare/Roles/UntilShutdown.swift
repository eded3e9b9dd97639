import ServiceLifecycle

/// Runs something that ends in order when its task is cancelled, as a service: shutdown cancels it.
struct UntilShutdown: Service {
  private let body: @Sendable () async throws -> Void

  init(_ body: @escaping @Sendable () async throws -> Void) {
    self.body = body
  }

  func run() async throws {
    try await cancelWhenGracefulShutdown(body)
  }
}
