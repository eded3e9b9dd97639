import CCrypt

/// Passwords hashed by libcrypt (`crypt(3)`): the one place of this target where raw pointers are used.
enum Crypt {
  /// The size of libcrypt's `struct crypt_data`, which Swift does not import whole; `crypt_rn` checks that it is given
  /// as much.
  private static let workspaceSize = 32768

  /// The hash of a password under a setting: an earlier hash of the same scheme, of which the password's part is
  /// ignored. Nil when libcrypt knows no such setting.
  ///
  /// Blocks for as long as the setting's cost demands: tens to hundreds of milliseconds. Callable from any thread.
  static func hash(_ password: String, setting: String) -> [UInt8]? {
    let workspace = UnsafeMutableRawPointer.allocate(byteCount: workspaceSize, alignment: 64)
    unsafe workspace.initializeMemory(as: UInt8.self, repeating: 0, count: workspaceSize)
    defer {
      // The workspace holds the password and what was derived from it.
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
