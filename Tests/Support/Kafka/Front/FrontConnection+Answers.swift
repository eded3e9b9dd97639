import EmbeddedKafka
import NIOCore
import RDKafka

extension FrontConnection {
  /// The API keys of the protocol that the front knows.
  enum Key: Int16 {
    case produce = 0
    case metadata = 3
    case findCoordinator = 10
    case saslHandshake = 17
    case apiVersions = 18
    case createTopics = 19
    case describeConfigs = 32
    case alterConfigs = 33
    case saslAuthenticate = 36
  }

  /// Puts the front's addresses and abilities into a broker's answer.
  func rewrite(_ answer: ByteBuffer) -> ByteBuffer {
    var rest = answer
    guard let correlation: Int32 = rest.readInteger(), let head = forwarded.removeValue(forKey: correlation) else {
      return answer
    }
    var new = head.answer
    switch Key(rawValue: head.key) {
    case .apiVersions: rewriteVersions(&rest, to: &new)
    case .metadata: rewriteMetadata(&rest, version: head.version, to: &new)
    case .findCoordinator: rewriteCoordinator(&rest, version: head.version, to: &new)
    default: return answer
    }
    new.writeImmutableBuffer(rest)
    return new
  }

  private func rewriteVersions(_ rest: inout ByteBuffer, to new: inout ByteBuffer) {
    guard let error: Int16 = rest.readInteger(), let count: Int32 = rest.readInteger() else { return }
    new.writeInteger(error)
    // Only the answers in the first form have entries; the client repeats the question.
    let own: [(Key, Int16)] =
      error == 0
      ? [
        (.saslHandshake, 1), (.createTopics, 2), (.describeConfigs, 1), (.alterConfigs, 0), (.saslAuthenticate, 0),
      ] : []
    new.writeInteger(count + Int32(own.count))
    for (key, version) in own { new.writeMultipleIntegers(key.rawValue, Int16(0), version) }
  }

  private func rewriteMetadata(_ rest: inout ByteBuffer, version: Int16, to new: inout ByteBuffer) {
    guard let count: Int32 = rest.readInteger() else { return }
    new.writeInteger(count)
    var first: Int32 = -1
    for index in 0..<count {
      guard let id: Int32 = rest.readInteger() else { return }
      if index == 0 { first = id }
      new.writeInteger(id)
      rewriteAddress(&rest, to: &new)
      if version >= 1 { new.writeKafkaString(rest.readKafkaString()) }
    }
    if version >= 2 { new.writeKafkaString(rest.readKafkaString()) }
    if version >= 1 {
      // The mock cluster names a controller that does not exist.
      _ = rest.readInteger(as: Int32.self)
      new.writeInteger(first)
    }
  }

  private func rewriteCoordinator(_ rest: inout ByteBuffer, version: Int16, to new: inout ByteBuffer) {
    if version >= 1, let throttle: Int32 = rest.readInteger() { new.writeInteger(throttle) }
    guard let error: Int16 = rest.readInteger() else { return }
    new.writeInteger(error)
    if version >= 1 { new.writeKafkaString(rest.readKafkaString()) }
    guard let node: Int32 = rest.readInteger() else { return }
    new.writeInteger(node)
    rewriteAddress(&rest, to: &new)
  }

  private func rewriteAddress(_ rest: inout ByteBuffer, to new: inout ByteBuffer) {
    let host = rest.readKafkaString()
    guard let port: Int32 = rest.readInteger() else { return }
    // The certificates of the tests name localhost.
    new.writeKafkaString(ports[port] == nil ? host : "localhost")
    new.writeInteger(ports[port] ?? port)
  }

  /// The answer to a request about topics' settings; nil for other requests.
  func administer(_ head: RequestHead) -> ByteBuffer? {
    var head = head
    switch Key(rawValue: head.key) {
    case .createTopics: return createTopics(&head)
    case .describeConfigs: return describe(&head)
    case .alterConfigs: return alter(&head)
    default: return nil
    }
  }

  private func createTopics(_ head: inout RequestHead) -> ByteBuffer {
    var answer = head.answer
    if head.version >= 2 { answer.writeInteger(Int32(0)) }
    let count: Int32 = head.body.readInteger() ?? 0
    answer.writeInteger(count)
    for _ in 0..<count {
      let name = head.body.readKafkaString() ?? ""
      let partitions: Int32 = head.body.readInteger() ?? 0
      let replicas: Int16 = head.body.readInteger() ?? 0
      // No assignments are sent with a number of partitions.
      _ = head.body.readInteger(as: Int32.self)
      var values: [String: String] = [:]
      for _ in 0..<(head.body.readInteger(as: Int32.self) ?? 0) {
        if let key = head.body.readKafkaString() { values[key] = head.body.readKafkaString() }
      }
      answer.writeKafkaString(name)
      let topic = TopicSpecification(name: name, partitions: partitions, replicationFactor: replicas)
      let create: @Sendable () throws -> Void = { [kafka, settings, values] in
        try kafka.cluster?.createTopics([topic])
        settings.set(values, of: name)
      }
      do {
        if !settings.postpone(create) { try create() }
        answer.writeInteger(Int16(0))
      } catch {
        // TOPIC_ALREADY_EXISTS
        answer.writeInteger(Int16(36))
      }
      if head.version >= 1 { answer.writeKafkaString(nil) }
    }
    return answer
  }

  private func describe(_ head: inout RequestHead) -> ByteBuffer {
    var answer = head.answer
    answer.writeInteger(Int32(0))
    let count: Int32 = head.body.readInteger() ?? 0
    answer.writeInteger(count)
    for _ in 0..<count {
      let kind: Int8 = head.body.readInteger() ?? 0
      let name = head.body.readKafkaString() ?? ""
      for _ in 0..<max(0, head.body.readInteger(as: Int32.self) ?? 0) { _ = head.body.readKafkaString() }
      let error = settings.error
      answer.writeInteger(error)
      answer.writeKafkaString(error == 0 ? nil : "not authorized to describe the settings")
      answer.writeInteger(kind)
      answer.writeKafkaString(name)
      let entries = error == 0 ? settings.all(of: name) : []
      answer.writeInteger(Int32(entries.count))
      for entry in entries {
        answer.writeKafkaString(entry.key)
        answer.writeKafkaString(entry.value)
        answer.writeInteger(UInt8(0))
        // The source: 1 for the topic's own value, 5 for the default.
        if head.version >= 1 { answer.writeInteger(Int8(entry.isOwn ? 1 : 5)) } else { answer.writeInteger(UInt8(0)) }
        answer.writeInteger(UInt8(0))
        if head.version >= 1 { answer.writeInteger(Int32(0)) }
      }
    }
    return answer
  }

  private func alter(_ head: inout RequestHead) -> ByteBuffer {
    var answer = head.answer
    answer.writeInteger(Int32(0))
    let count: Int32 = head.body.readInteger() ?? 0
    answer.writeInteger(count)
    for _ in 0..<count {
      let kind: Int8 = head.body.readInteger() ?? 0
      let name = head.body.readKafkaString() ?? ""
      var values: [String: String] = [:]
      for _ in 0..<(head.body.readInteger(as: Int32.self) ?? 0) {
        if let key = head.body.readKafkaString() { values[key] = head.body.readKafkaString() }
      }
      // Unlike the incremental request, it replaces all of the topic's own values.
      settings.replace(with: values, of: name)
      answer.writeInteger(Int16(0))
      answer.writeKafkaString(nil)
      answer.writeInteger(kind)
      answer.writeKafkaString(name)
    }
    return answer
  }
}
