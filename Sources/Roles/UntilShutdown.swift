import ServiceLifecycle

/// Runs something that ends in order when its task is cancelled, as a service: shutdown cancels it.
package struct UntilShutdown: Service {
  private let body: @Sendable () async throws -> Void

  package init(_ body: @escaping @Sendable () async throws -> Void) {
    self.body = body
  }

  package func run() async throws {
    try await cancelWhenGracefulShutdown(body)
  }
}
