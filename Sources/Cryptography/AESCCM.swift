import CCrypto

/// AES-128 in the mode CCM (RFC 3610), as in Bluetooth: of libcrypto, which is in the process already, with libmosquitto.
public enum AESCCM {
  /// - Returns: the text; nil if it was not made with this key and nonce, or was changed.
  public static func open(
    _ ciphertext: [UInt8], tag: [UInt8], nonce: [UInt8], key: [UInt8]
  ) -> [UInt8]? {
    guard key.count == 16, let context = EVP_CIPHER_CTX_new() else { return nil }
    defer { EVP_CIPHER_CTX_free(context) }
    var tag = tag
    var text = [UInt8](repeating: 0, count: ciphertext.count)
    var count: Int32 = 0
    guard EVP_DecryptInit_ex(context, EVP_aes_128_ccm(), nil, nil, nil) == 1,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonce.count), nil) == 1,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1,
      EVP_DecryptInit_ex(context, nil, nil, key, nonce) == 1,
      // Decrypts and authenticates at once.
      EVP_DecryptUpdate(context, &text, &count, ciphertext, Int32(ciphertext.count)) == 1
    else { return nil }
    return text
  }
}
