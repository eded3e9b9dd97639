import Dispatch
import Synchronization

/// A place for one connection of the pool, with a serial queue on which jobs may block. It serves one job at a time.
final class Slot: Sendable {
  /// The queue on which the slot's jobs run. Each slot has its own, so that a blocked job delays no other slot.
  let queue = DispatchQueue(label: "postgresql.connection")
  /// Only used by the slot's current job, so the lock is never contended; it lets the compiler check that rule.
  private let connection = Mutex<PostgreSQLConnection?>(nil)

  /// Runs a block with the slot's connection; connects first when there is none or the server has closed it.
  func withConnection<Value: Sendable>(
    connect: () throws -> sending PostgreSQLConnection, _ body: (PostgreSQLConnection) throws -> Value
  ) throws -> Value {
    try connection.withLock { held in
      if let idle = held, idle.isStale() { held = nil }
      if held == nil { held = try connect() }
      guard let held = held else { throw PostgreSQLError(.unavailable, hint: "no connection") }
      return try body(held)
    }
  }

  /// Closes the connection unless the next job can use it.
  func tidy() {
    connection.withLock { held in
      if held?.isReusable == false { held = nil }
    }
  }

  /// Closes the connection.
  func close() {
    connection.withLock { $0 = nil }
  }
}
