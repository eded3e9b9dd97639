import CRDKafka

extension AdminHandle {
  /// The settings of topics, or the broker's error for each.
  ///
  /// - Throws: When the request as a whole got no answer.
  func describe(_ topics: [String], timeoutMilliseconds: Int32) throws(RDKafkaError)
    -> [String: Result<[String: TopicSetting], RDKafkaError>]
  {
    var resources: [OpaquePointer?] = unsafe topics.map {
      unsafe rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0)
    }
    defer { unsafe rd_kafka_ConfigResource_destroy_array(&resources, resources.count) }
    let event = unsafe try answer(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "describe topics", timeoutMilliseconds) {
      options, queue in
      unsafe resources.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_DescribeConfigs(handle.pointer, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    var count = 0
    let answers = unsafe rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event), &count)
    var found: [String: Result<[String: TopicSetting], RDKafkaError>] = [:]
    for index in 0..<count {
      guard let resource = unsafe answers?[index] else { continue }
      let name = unsafe String(cString: rd_kafka_ConfigResource_name(resource))
      if let error = unsafe Self.error(of: resource) {
        found[name] = .failure(error)
      } else {
        found[name] = unsafe .success(Self.settings(of: resource))
      }
    }
    return found
  }

  /// Replaces all of a topic's own settings.
  ///
  /// - Throws: The broker's error, or when the request got no answer.
  func alter(_ topic: String, settings: [String: String], timeoutMilliseconds: Int32) throws(RDKafkaError) {
    var resources: [OpaquePointer?] = unsafe [rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic)]
    defer { unsafe rd_kafka_ConfigResource_destroy_array(&resources, resources.count) }
    for (name, value) in settings {
      let status = unsafe rd_kafka_ConfigResource_set_config(resources[0], name, value)
      guard status == RD_KAFKA_RESP_ERR_NO_ERROR else {
        throw RDKafkaError(response: status, context: "topic '\(topic)', '\(name)'")
      }
    }
    let event = unsafe try answer(RD_KAFKA_ADMIN_OP_ALTERCONFIGS, "change topics", timeoutMilliseconds) {
      options, queue in
      unsafe resources.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_AlterConfigs(handle.pointer, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    var count = 0
    let answers = unsafe rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &count)
    guard count > 0, let resource = unsafe answers?[0] else { return }
    if let error = unsafe Self.error(of: resource) { throw error }
  }

  private static func error(of resource: OpaquePointer) -> RDKafkaError? {
    let status = unsafe rd_kafka_ConfigResource_error(resource)
    guard status != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return RDKafkaError(response: status, context: unsafe String(cString: rd_kafka_ConfigResource_name(resource)))
  }

  private static func settings(of resource: OpaquePointer) -> [String: TopicSetting] {
    var count = 0
    let entries = unsafe rd_kafka_ConfigResource_configs(resource, &count)
    var settings: [String: TopicSetting] = [:]
    for index in 0..<count {
      // A sensitive setting has no value.
      guard let entry = unsafe entries?[index], let value = unsafe rd_kafka_ConfigEntry_value(entry) else { continue }
      unsafe settings[String(cString: rd_kafka_ConfigEntry_name(entry))] = unsafe TopicSetting(
        value: String(cString: value),
        isOwn: rd_kafka_ConfigEntry_source(entry) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
    }
    return settings
  }
}
