import CRDKafka

extension Handle {
  /// Looks at the topics and the group of a consumer with a companion topic.
  /// Blocks the thread for at most three times `timeoutMilliseconds`.
  func look(for configuration: ConsumerConfiguration, timeoutMilliseconds: Int32) throws(RDKafkaError)
    -> CompanionPartitions.Look
  {
    guard let leadingTopic = configuration.topics.first, let companionTopic = configuration.companionTopic else {
      throw RDKafkaError(code: .configuration, message: "there is no companion topic")
    }
    let counts = try [leadingTopic, companionTopic].map { topic throws(RDKafkaError) in
      try TopicHandle(name: topic, on: self).partitionCount(timeoutMilliseconds: timeoutMilliseconds)
    }
    let subscribers =
      configuration.client.profile.describesGroups
      ? subscribers(to: companionTopic, inGroup: configuration.groupID, timeoutMilliseconds: timeoutMilliseconds)
      : .none
    return CompanionPartitions.Look(leading: counts[0], companion: counts[1], subscribers: subscribers)
  }

  /// Whether members of the group subscribe to the topic. Blocks the thread for at most `timeoutMilliseconds`.
  private func subscribers(to topic: String, inGroup group: String, timeoutMilliseconds: Int32)
    -> CompanionPartitions.Subscribers
  {
    var found: UnsafePointer<rd_kafka_group_list>?
    let status = unsafe rd_kafka_list_groups(pointer, group, &found, timeoutMilliseconds)
    guard let list = unsafe found else { return .undescribed }
    defer { unsafe rd_kafka_group_list_destroy(list) }
    // An answer is partial when a broker is down; the group's coordinator has answered if the group is in it.
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR || status == RD_KAFKA_RESP_ERR__PARTIAL,
      unsafe list.pointee.group_cnt > 0, let info = unsafe list.pointee.groups?.pointee,
      unsafe info.err == RD_KAFKA_RESP_ERR_NO_ERROR, let state = unsafe info.state
    else { return .undescribed }
    // In other states the answer has no subscriptions.
    guard unsafe String(cString: state) == "Stable" else { return .unsettled }
    for index in 0..<Int(unsafe info.member_cnt) {
      guard let member = unsafe info.members?[index], let bytes = unsafe member.member_metadata else {
        return .undescribed
      }
      let metadata = unsafe UnsafeRawBufferPointer(start: bytes, count: Int(unsafe member.member_metadata_size))
      guard let topics = unsafe MemberSubscription.topics(in: Array(metadata)) else { return .undescribed }
      if topics.contains(topic) { return .some }
    }
    return .none
  }
}

/// The subscription of a group's member in the format of Kafka's consumer protocol.
enum MemberSubscription {
  /// The subscribed topics; nil if the bytes are no subscription. All versions begin alike: a version (16 bits), the
  /// number of topics (32 bits), and each topic's length (16 bits) and name.
  static func topics(in bytes: [UInt8]) -> [String]? {
    var rest = bytes[...]
    func number(_ width: Int) -> Int? {
      guard rest.count >= width else { return nil }
      defer { rest = rest.dropFirst(width) }
      return rest.prefix(width).reduce(0) { $0 << 8 | Int($1) }
    }
    guard number(2) != nil, let count = number(4), count <= bytes.count else { return nil }
    var topics: [String] = []
    for _ in 0..<count {
      guard let length = number(2), rest.count >= length else { return nil }
      topics.append(String(decoding: rest.prefix(length), as: UTF8.self))
      rest = rest.dropFirst(length)
    }
    return topics
  }
}
