/// A record's place in the log.
struct AuditPlace: Hashable {
  let topic: String
  let partition: Int32
  let offset: Int64
}
