import CCrypt

/// Hashes passwords with libcrypt (`crypt(3)`).
enum Crypt {
  /// The size of libcrypt's `struct crypt_data`, which Swift does not import completely.
  /// `crypt_rn` checks it.
  private static let workspaceSize = 32768

  /// Returns the hash of a password, or nil if libcrypt does not know the setting.
  ///
  /// The setting is an earlier hash; its scheme, cost and salt are used. Blocks for the time of the setting's cost:
  /// tens to hundreds of milliseconds. Call it from any thread.
  static func hash(_ password: String, setting: String) -> [UInt8]? {
    let workspace = UnsafeMutableRawPointer.allocate(byteCount: workspaceSize, alignment: 64)
    unsafe workspace.initializeMemory(as: UInt8.self, repeating: 0, count: workspaceSize)
    defer {
      // The workspace contains the password and values derived from it.
      unsafe explicit_bzero(workspace, workspaceSize)
      unsafe workspace.deallocate()
    }
    guard let result = unsafe crypt_rn(password, setting, workspace, Int32(workspaceSize)) else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: result, count: strlen(result)).map { UInt8(bitPattern: $0) })
  }

  /// Whether libcrypt can check hashes like this one.
  static func accepts(_ hash: String) -> Bool {
    let verdict = unsafe crypt_checksalt(hash)
    return verdict != CRYPT_SALT_INVALID && verdict != CRYPT_SALT_METHOD_DISABLED
  }
}
