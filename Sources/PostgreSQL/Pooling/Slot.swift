import Dispatch
import Synchronization

/// A place for one connection of the pool, with a queue whose thread may wait for the server. One job has it at a time.
final class Slot: Sendable {
  /// Where the slot's jobs run. A serial queue of its own: no other slot's wait holds it up.
  let queue = DispatchQueue(label: "postgresql.connection")
  /// Only the job that has the slot looks at it, so nobody ever waits for the lock; it makes that a rule the compiler
  /// keeps.
  private let connection = Mutex<PostgreSQLConnection?>(nil)

  /// Runs a block with the slot's connection, which is made when there is none that works.
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

  /// Gives up the connection unless the next job can use it.
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
