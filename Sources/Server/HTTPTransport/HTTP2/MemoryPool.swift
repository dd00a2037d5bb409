internal import Glibc

/// A memory pool for libnghttp2, which needs several small blocks of memory per request. Each loop has one pool, with
/// free lists by size.
///
/// Each block has a header of 16 bytes with the index of its list, because libnghttp2 frees blocks without their size.
/// Large blocks are allocated by the system.
///
/// All sessions of the loop share their first frame buffer. It has 16 KiB, more than all other memory of a session.
/// This is possible for three reasons. One session works at a time; `nghttp2_session_mem_send` composes and returns a
/// frame in one call; and the caller copies the frame before the next call. If a session allocates a larger buffer for
/// longer heads, it does not share that buffer.
@safe
package final class MemoryPool {
    private static let headBytes = 16
    private static let stepBytes = 32
    private static let classCount = 64
    private static let chunkBytes = 65_536
    private static let systemClass = -1
    private static let sharedClass = -2
    /// The size of a session's first frame buffer: the head of a frame, the length of its padding, and 16,384 bytes.
    private static let frameBufferBytes = 9 + 1 + 16_384

    private let lists = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: MemoryPool.classCount)
    private var chunks: [UnsafeMutableRawPointer] = unsafe []
    private var fresh: UnsafeMutableRawPointer?
    private var freshBytes = 0
    private let frameBuffer = UnsafeMutableRawPointer.allocate(
        byteCount: MemoryPool.headBytes + MemoryPool.frameBufferBytes,
        alignment: 16
    )
    /// True while a session is being created. The session gets the shared frame buffer.
    private var lendsFrameBuffer = false

    /// Creates an empty pool.
    package init() {
        unsafe self.lists.initialize(repeating: nil, count: MemoryPool.classCount)
        unsafe self.frameBuffer.storeBytes(of: MemoryPool.sharedClass, as: Int.self)
        unsafe self.frameBuffer.storeBytes(of: MemoryPool.frameBufferBytes, toByteOffset: 8, as: Int.self)
    }

    deinit {
        unsafe self.frameBuffer.deallocate()
        while let chunk = unsafe self.chunks.popLast() { unsafe chunk.deallocate() }
        unsafe self.lists.deallocate()
    }

    /// Runs `make`, which creates a session with the shared frame buffer.
    func lendingFrameBuffer<Result>(_ make: () -> Result) -> Result {
        self.lendsFrameBuffer = true
        defer { self.lendsFrameBuffer = false }
        return make()
    }

    /// Allocates a block of at least `count` bytes, aligned to 16.
    ///
    /// - Returns: nil if the system has no memory.
    @inline(__always)
    package func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        let sizeClass = (count + MemoryPool.stepBytes - 1) / MemoryPool.stepBytes
        guard sizeClass < MemoryPool.classCount else { return unsafe self.allocateLarge(count) }
        if let piece = unsafe self.lists[sizeClass] {
            unsafe self.lists[sizeClass] = unsafe piece.load(as: UnsafeMutableRawPointer?.self)
            return unsafe piece
        }
        return unsafe self.carve(sizeClass)
    }

    /// Frees a block that `allocate` or `reallocate` returned.
    @inline(__always)
    package func free(_ piece: UnsafeMutableRawPointer) {
        let sizeClass = unsafe (piece - MemoryPool.headBytes).load(as: Int.self)
        guard sizeClass >= 0 else {
            if sizeClass == MemoryPool.systemClass { unsafe Glibc.free(piece - MemoryPool.headBytes) }
            return
        }
        unsafe piece.storeBytes(of: self.lists[sizeClass], as: UnsafeMutableRawPointer?.self)
        unsafe self.lists[sizeClass] = unsafe piece
    }

    /// Enlarges a block to at least `count` bytes, and keeps its contents. The block may move.
    ///
    /// - Returns: the new address; nil if the system has no memory. The block is then unchanged.
    package func reallocate(_ piece: UnsafeMutableRawPointer, _ count: Int) -> UnsafeMutableRawPointer? {
        let head = unsafe piece - MemoryPool.headBytes
        let sizeClass = unsafe head.load(as: Int.self)
        let held =
            sizeClass >= 0
            ? max(1, sizeClass) * MemoryPool.stepBytes : unsafe head.load(fromByteOffset: 8, as: Int.self)
        if count <= held { return unsafe piece }
        guard let grown = unsafe self.allocate(count) else { return nil }
        unsafe grown.copyMemory(from: piece, byteCount: held)
        unsafe self.free(piece)
        return unsafe grown
    }

    private func allocateLarge(_ count: Int) -> UnsafeMutableRawPointer? {
        if self.lendsFrameBuffer && count == MemoryPool.frameBufferBytes {
            return unsafe self.frameBuffer + MemoryPool.headBytes
        }
        guard let head = unsafe malloc(count + MemoryPool.headBytes) else { return nil }
        unsafe head.storeBytes(of: MemoryPool.systemClass, as: Int.self)
        unsafe head.storeBytes(of: count, toByteOffset: 8, as: Int.self)
        return unsafe head + MemoryPool.headBytes
    }

    private func carve(_ sizeClass: Int) -> UnsafeMutableRawPointer? {
        let count = MemoryPool.headBytes + max(1, sizeClass) * MemoryPool.stepBytes
        if self.freshBytes < count {
            let chunk = UnsafeMutableRawPointer.allocate(byteCount: MemoryPool.chunkBytes, alignment: 16)
            unsafe self.chunks.append(chunk)
            unsafe self.fresh = unsafe chunk
            self.freshBytes = MemoryPool.chunkBytes
        }
        let head = unsafe self.fresh.unsafelyUnwrapped
        unsafe self.fresh = unsafe head + count
        self.freshBytes -= count
        unsafe head.storeBytes(of: sizeClass, as: Int.self)
        return unsafe head + MemoryPool.headBytes
    }
}

// MARK: C callbacks

/// Returns the result of `body` for the pool in the user data of libnghttp2's memory functions.
@inline(__always)
private func withPool<Result>(_ user: UnsafeMutableRawPointer?, _ body: (MemoryPool) -> Result) -> Result {
    unsafe Unmanaged<MemoryPool>.fromOpaque(user.unsafelyUnwrapped)._withUnsafeGuaranteedRef { body($0) }
}

func poolMalloc(_ count: Int, _ user: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    unsafe withPool(user) { unsafe $0.allocate(count) }
}

func poolFree(_ piece: UnsafeMutableRawPointer?, _ user: UnsafeMutableRawPointer?) {
    guard let piece = unsafe piece else { return }
    unsafe withPool(user) { unsafe $0.free(piece) }
}

func poolCalloc(_ count: Int, _ size: Int, _ user: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: size)
    guard !isTooLarge, let piece = unsafe withPool(user, { unsafe $0.allocate(bytes) }) else { return nil }
    unsafe piece.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    return unsafe piece
}

func poolRealloc(
    _ piece: UnsafeMutableRawPointer?,
    _ count: Int,
    _ user: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
    guard let piece = unsafe piece else { return unsafe poolMalloc(count, user) }
    return unsafe withPool(user) { unsafe $0.reallocate(piece, count) }
}
