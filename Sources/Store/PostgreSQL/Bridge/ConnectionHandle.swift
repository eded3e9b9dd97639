import CPQ
import Glibc

/// Owns one `PGconn`. Use it from one thread at a time, which it blocks.
///
/// Uses libpq's asynchronous calls and polls the socket itself, so that every wait has a deadline: libpq's blocking
/// calls have none, and a frozen server would block the thread for ever.
@safe final class ConnectionHandle {
  private let connection: OpaquePointer

  /// Connects with libpq's connection parameters. On failure `explain` gets libpq's own message, which may name hosts
  /// and users; the thrown error does not.
  init(_ parameters: [String: String], explain: (String) -> Void) throws(PostgreSQLError) {
    var keys: [UnsafePointer<CChar>?] = unsafe []
    var values: [UnsafePointer<CChar>?] = unsafe []
    defer { unsafe (keys + values).forEach { unsafe free(UnsafeMutableRawPointer(mutating: $0)) } }
    for (key, value) in parameters {
      unsafe keys.append(UnsafePointer(strdup(key)))
      unsafe values.append(UnsafePointer(strdup(value)))
    }
    unsafe keys.append(nil)
    unsafe values.append(nil)
    guard let connection = unsafe PQconnectdbParams(&keys, &values, 0) else {
      throw PostgreSQLError(.unavailable, hint: "out of memory")
    }
    guard unsafe PQstatus(connection) == CONNECTION_OK, unsafe PQsetnonblocking(connection, 1) == 0 else {
      // Some messages have several lines.
      let reason = unsafe String(cString: PQerrorMessage(connection)).split(whereSeparator: \.isNewline).joined(
        separator: " ")
      explain(reason)
      let isPasswordMissing = unsafe PQconnectionNeedsPassword(connection) != 0
      unsafe PQfinish(connection)
      // Distinguishes a configuration error from an unreachable server. FATAL is the server refusing the login: its
      // message may mention SSL as well, but TLS did not fail.
      let isInsecure = !reason.contains("FATAL:") && ["SSL", "certificate"].contains { reason.contains($0) }
      let hint =
        if isPasswordMissing {
          "a password is required"
        } else if isInsecure {
          "no TLS connection with the required security"
        } else if reason.contains("hot standby mode") || reason.contains("session is read-only") {
          "the server is read-only"
        } else if reason.contains("Connection refused") {
          "the connection was refused"
        } else if reason.contains("could not translate host name") {
          "the host name cannot be resolved"
        } else if reason.contains("timeout expired") {
          "the server did not answer in time"
        } else if reason.contains("No such file or directory") {
          "there is no such socket"
        } else if reason.contains("password authentication failed") || reason.contains("role \"") {
          "the server refuses the user or the password"
        } else {
          "no connection"
        }
      var error = PostgreSQLError(.unavailable, hint: hint)
      error.isConnectionLost = true
      throw error
    }
    unsafe self.connection = unsafe connection
    // libpq prints notices to standard error by default, and they may repeat stored values.
    unsafe PQsetNoticeReceiver(connection, { _, _ in }, nil)
  }

  deinit {
    unsafe PQfinish(connection)
  }

  /// Whether libpq has seen the connection fail.
  var isBroken: Bool { unsafe PQstatus(connection) != CONNECTION_OK }

  /// Whether a transaction is open.
  var isInTransaction: Bool { unsafe PQtransactionStatus(connection) != PQTRANS_IDLE }

  /// Whether the idle connection has unread input: nearly always the server's notice that it closes the session.
  func isStale() -> Bool {
    var request = unsafe pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
    return unsafe poll(&request, 1, 0) != 0 || isBroken
  }

  /// Runs statements separated by semicolons, as one transaction unless one is open. Their rows are discarded.
  func executeScript(_ sql: String, deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    try expectSent(unsafe PQsendQuery(connection, sql))
    _ = try finish(deadline)
  }

  /// Prepares a statement with parameters of these types.
  func prepare(_ name: String, _ sql: String, types: [UInt32], deadline: ContinuousClock.Instant)
    throws(PostgreSQLError)
  {
    try expectSent(unsafe PQsendPrepare(connection, name, sql, Int32(types.count), types))
    _ = try finish(deadline)
  }

  /// A statement to run with parameters.
  enum Command {
    /// A prepared statement, by its name.
    case prepared(String)
    /// The text of a statement, planned for these parameter values.
    case once(String)
  }

  /// Runs a statement with parameters.
  func run(_ command: Command, _ parameters: [Parameter], deadline: ContinuousClock.Instant) throws(PostgreSQLError)
    -> ResultRows
  {
    try send(command, parameters)
    return try finish(deadline)
  }

  /// Runs a prepared statement for each of the lists of parameters, without waiting for each result. Throws the first
  /// error, after which the others are not run.
  func run(
    prepared name: String, each lists: ArraySlice<[Parameter]>, deadline: ContinuousClock.Instant
  ) throws(PostgreSQLError) -> [ResultRows] {
    try expectSent(unsafe PQenterPipelineMode(connection))
    for parameters in lists { try send(.prepared(name), parameters) }
    try expectSent(unsafe PQpipelineSync(connection))
    try flush(deadline)
    var results: [ResultRows] = []
    var failure: PostgreSQLError?
    for _ in lists {
      try wait(deadline)
      guard let result = unsafe PQgetResult(connection) else { throw lost() }
      if let error = unsafe Self.error(of: result) {
        unsafe PQclear(result)
        if failure == nil { failure = error }
        if isBroken { break }
      } else {
        unsafe results.append(ResultRows(adopting: result))
      }
      // The end of this statement's results.
      try wait(deadline)
      if let further = unsafe PQgetResult(connection) { unsafe PQclear(further) }
    }
    if var failure, isBroken {
      failure.isConnectionLost = true
      throw failure
    }
    try wait(deadline)
    guard let end = unsafe PQgetResult(connection) else { throw lost() }
    let isEnd = unsafe PQresultStatus(end) == PGRES_PIPELINE_SYNC
    unsafe PQclear(end)
    guard isEnd, unsafe PQexitPipelineMode(connection) == 1 else { throw lost() }
    if let failure { throw failure }
    return results
  }

  /// Puts a statement with parameters into the output.
  private func send(_ command: Command, _ parameters: [Parameter]) throws(PostgreSQLError) {
    // One buffer for all values, because libpq takes their addresses.
    var buffer: [UInt8] = []
    buffer.reserveCapacity(parameters.reduce(1) { $0 + ($1.bytes?.count ?? 0) })
    for parameter in parameters { if let bytes = parameter.bytes { buffer.append(contentsOf: bytes) } }
    // An empty value still needs an address: a null pointer means NULL.
    buffer.append(0)
    let lengths = parameters.map { Int32($0.bytes?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: parameters.count)
    let status = unsafe buffer.withUnsafeBytes { bytes -> Int32 in
      var offset = 0
      var values: [UnsafePointer<CChar>?] = unsafe []
      unsafe values.reserveCapacity(parameters.count)
      for parameter in parameters {
        guard let value = parameter.bytes, let base = bytes.baseAddress else {
          unsafe values.append(nil)
          continue
        }
        unsafe values.append((base + offset).assumingMemoryBound(to: CChar.self))
        offset += value.count
      }
      let count = Int32(parameters.count)
      switch command {
      case .prepared(let name): return unsafe PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1)
      case .once(let sql):
        return unsafe PQsendQueryParams(connection, sql, count, parameters.map(\.oid), values, lengths, formats, 1)
      }
    }
    try expectSent(status)
  }

  /// Begins a `COPY` in either direction.
  func beginCopy(_ sql: String, deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    try expectSent(unsafe PQsendQuery(connection, sql))
    try flush(deadline)
    try wait(deadline)
    guard let result = unsafe PQgetResult(connection) else { throw lost() }
    let status = unsafe PQresultStatus(result)
    if status == PGRES_COPY_IN || status == PGRES_COPY_OUT {
      unsafe PQclear(result)
      return
    }
    let error = unsafe Self.error(of: result) ?? PostgreSQLError(.programming, hint: "not a COPY")
    unsafe PQclear(result)
    try wait(deadline)
    while let rest = unsafe PQgetResult(connection) { unsafe PQclear(rest) }
    throw error
  }

  /// Sends a piece of the data of a copy into the database.
  func send(_ bytes: [UInt8], deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    while true {
      let status = unsafe bytes.withUnsafeBytes { buffer in
        unsafe PQputCopyData(connection, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(buffer.count))
      }
      guard status >= 0 else { throw lost() }
      // libpq buffers without limit: flush each piece.
      try flush(deadline)
      if status == 1 { return }
    }
  }

  /// Ends a copy into the database. With `abandoning` the server discards all rows and answers with an error. Returns
  /// the number of rows.
  func endCopy(abandoning: Bool, deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> Int {
    while true {
      let status = unsafe PQputCopyEnd(connection, abandoning ? "given up" : nil)
      guard status >= 0 else { throw lost() }
      try flush(deadline)
      if status == 1 { break }
    }
    return try finish(deadline).affected
  }

  /// The next piece of a copy out of the database: a row in text format, a part of the binary format; nil at the end.
  func receive(deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> [UInt8]? {
    while true {
      var piece: UnsafeMutablePointer<CChar>?
      let length = unsafe PQgetCopyData(connection, &piece, 1)
      switch length {
      case 0:
        try waitForSocket(Int16(POLLIN), deadline)
        guard unsafe PQconsumeInput(connection) == 1 else { throw lost() }
      case -1:
        _ = try finish(deadline)
        return nil
      case 1...:
        defer { unsafe PQfreemem(piece) }
        return unsafe Array(UnsafeRawBufferPointer(start: piece, count: Int(length)))
      default:
        _ = try finish(deadline)
        throw lost()
      }
    }
  }

  private func expectSent(_ status: Int32) throws(PostgreSQLError) {
    guard status == 1 else { throw lost() }
  }

  /// Flushes the output and reads all results. Returns the last one, or throws the first error among them.
  private func finish(_ deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> ResultRows {
    try flush(deadline)
    var last: ResultRows?
    var failure: PostgreSQLError?
    while true {
      try wait(deadline)
      guard let result = unsafe PQgetResult(connection) else { break }
      let status = unsafe PQresultStatus(result)
      if status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH {
        // PQgetResult would return this state for ever. A copy must use the methods above.
        unsafe PQclear(result)
        var error = PostgreSQLError(.programming, hint: "an unexpected COPY")
        error.isConnectionLost = true
        throw error
      }
      if let error = unsafe Self.error(of: result) {
        unsafe PQclear(result)
        if failure == nil { failure = error }
        if isBroken { break }
      } else {
        unsafe last = ResultRows(adopting: result)
      }
    }
    if var failure {
      if isBroken { failure.isConnectionLost = true }
      throw failure
    }
    guard let last else { throw lost() }
    return last
  }

  private func flush(_ deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    while true {
      switch unsafe PQflush(connection) {
      case 0: return
      case 1:
        // The server may be unable to read before its own output is read.
        try waitForSocket(Int16(POLLIN | POLLOUT), deadline)
        guard unsafe PQconsumeInput(connection) == 1 else { throw lost() }
      default: throw lost()
      }
    }
  }

  private func wait(_ deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    while unsafe PQisBusy(connection) == 1 {
      try waitForSocket(Int16(POLLIN), deadline)
      guard unsafe PQconsumeInput(connection) == 1 else { throw lost() }
    }
  }

  private func waitForSocket(_ events: Int16, _ deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
    while true {
      let rest = deadline - .now
      var request = unsafe pollfd(fd: PQsocket(connection), events: events, revents: 0)
      // A closed socket has number -1, which poll ignores.
      guard request.fd >= 0 else { throw lost() }
      let milliseconds = Int32(
        clamping: max(0, rest.components.seconds) * 1000 + rest.components.attoseconds / 1_000_000_000_000_000)
      let ready = unsafe poll(&request, 1, max(0, milliseconds + 1))
      if ready > 0 { return }
      if ready < 0, errno != EINTR { throw lost() }
      if ready == 0, ContinuousClock.now >= deadline {
        var error = PostgreSQLError(.unavailable, hint: "no answer in time")
        (error.isConnectionLost, error.isTimeout) = (true, true)
        throw error
      }
    }
  }

  private func lost() -> PostgreSQLError {
    var error = PostgreSQLError(.unavailable, hint: "the connection was lost")
    error.isConnectionLost = true
    return error
  }

  /// The error of a result; nil when it is none.
  private static func error(of result: OpaquePointer) -> PostgreSQLError? {
    switch unsafe PQresultStatus(result) {
    case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR, PGRES_PIPELINE_ABORTED:
      func field(_ code: Int32) -> String? {
        unsafe PQresultErrorField(result, code).map { unsafe String(cString: $0) }
      }
      return PostgreSQLError(sqlState: field(fanfare_diag_sqlstate()), constraint: field(fanfare_diag_constraint()))
    default: return nil
    }
  }
}
