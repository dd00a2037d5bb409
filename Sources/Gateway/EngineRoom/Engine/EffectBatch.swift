package import Bytes
package import DeviceEngine
package import WakeDispatch

/// The answer to one push: plain memory.
package struct PushReply: BitwiseCopyable {
    package let address: StreamAddress
    package let apnsID: APNsID
    /// The index of the reason it was refused for, or `accepted`.
    package let reason: UInt8
    /// The raw value of its disposition.
    package let disposition: UInt8
    /// The raw value of the hold that applies, or `none`.
    package let held: UInt8
    /// After how many seconds a refused push may be sent again; 0 when that is not known.
    package var retryAfterSeconds: UInt32 = 0
    /// When it will be eligible, in seconds since 1970, or `noMoment`.
    package let eligibleAt: Int64
    /// When its token was removed, in milliseconds since 1970, or `noMoment`.
    package let timestamp: Int64

    package static let accepted: UInt8 = .max
    static let none: UInt8 = .max
    package static let noMoment: Int64 = -1
}

/// What a step of the engine has for one loop, in order.
///
/// `@unchecked Sendable`: a batch has one owner at a time, and changes owners under the lock of `LoopMailbox`.
package final class EffectBatch: @unchecked Sendable {

    package init() {}
    private enum Tag {
        static let push: UInt8 = 0
        static let answer: UInt8 = 1
        static let subscribed: UInt8 = 2
        static let event: UInt8 = 3
        static let released: UInt8 = 4
        static let draining: UInt8 = 5
        static let drained: UInt8 = 6
        static let metrics: UInt8 = 7
    }

    private struct Header: BitwiseCopyable {
        let address: StreamAddress
        let status: UInt16
        let isWake: Bool
        let count: UInt32
    }

    private struct Release: BitwiseCopyable {
        let address: StreamAddress
        /// The words of the wake's id.
        let first: UInt64
        let second: UInt64
    }

    private var items = ByteBuffer()

    var isEmpty: Bool { self.items.isEmpty }

    func append(_ reply: PushReply) {
        self.items.append(Tag.push)
        self.items.append(memoryOf: reply)
    }

    /// An answer with a JSON body, or with none.
    package func appendAnswer(_ address: StreamAddress, status: Int, body: ByteView) {
        self.append(Tag.answer, address, status: status, bytes: body)
    }

    /// An answer with every metric.
    func appendMetrics(_ address: StreamAddress, _ text: ByteView) {
        self.append(Tag.metrics, address, status: 200, bytes: text)
    }

    /// The stream is subscribed: its response begins.
    func appendSubscribed(_ address: StreamAddress) {
        self.append(Tag.subscribed, address, bytes: ByteView())
    }

    /// Bytes for an open stream.
    func appendEvent(_ address: StreamAddress, isWake: Bool, _ bytes: ByteView) {
        self.append(Tag.event, address, isWake: isWake, bytes: bytes)
    }

    /// A wake the stream held has ended.
    func appendReleased(_ address: StreamAddress, _ wake: WakeID) {
        self.items.append(Tag.released)
        self.items.append(memoryOf: Release(address: address, first: wake.first, second: wake.second))
    }

    /// The stream's worker stops, and holds no wake any more.
    func appendDrained(_ address: StreamAddress) {
        self.append(Tag.drained, address, bytes: ByteView())
    }

    /// Nothing is launched any more.
    func appendDraining() {
        self.items.append(Tag.draining)
    }

    func append(_ other: EffectBatch) {
        self.items.append(other.items.view)
    }

    package func removeAll() {
        self.items.removeAll()
    }

    /// Hands over every item in order.
    package func forEach(_ taker: some EffectTaker) {
        let bytes = self.items.view
        var offset = 0
        while offset < bytes.count {
            let tag = bytes[offset]
            offset += 1
            if tag == Tag.push {
                taker.answerPush(bytes.load(PushReply.self, at: offset))
                offset += MemoryLayout<PushReply>.size
                continue
            }
            if tag == Tag.draining {
                taker.startDraining()
                continue
            }
            if tag == Tag.released {
                let release = bytes.load(Release.self, at: offset)
                taker.released(release.address, WakeID(random: (release.first, release.second)))
                offset += MemoryLayout<Release>.size
                continue
            }
            let header = bytes.load(Header.self, at: offset)
            offset += MemoryLayout<Header>.size
            let payload = bytes[offset..<offset + Int(header.count)]
            offset += Int(header.count)
            switch tag {
            case Tag.answer: taker.answer(header.address, status: Int(header.status), body: payload)
            case Tag.subscribed: taker.subscribed(header.address)
            case Tag.event: taker.event(header.address, isWake: header.isWake, payload)
            case Tag.metrics: taker.answerMetrics(header.address, payload)
            default: taker.drained(header.address)
            }
        }
    }

    private func append(
        _ tag: UInt8,
        _ address: StreamAddress,
        status: Int = 0,
        isWake: Bool = false,
        bytes: ByteView
    ) {
        self.items.append(tag)
        self.items.append(
            memoryOf: Header(address: address, status: UInt16(status), isWake: isWake, count: UInt32(bytes.count))
        )
        self.items.append(bytes)
    }
}

/// Takes the effects of the engine on a loop.
package protocol EffectTaker {
    func answerPush(_ reply: PushReply)
    func answer(_ address: StreamAddress, status: Int, body: ByteView)
    /// - Parameter text: every metric, as `MetricsText` writes it.
    func answerMetrics(_ address: StreamAddress, _ text: ByteView)
    func subscribed(_ address: StreamAddress)
    func event(_ address: StreamAddress, isWake: Bool, _ bytes: ByteView)
    /// A wake that the stream held has ended.
    func released(_ address: StreamAddress, _ wake: WakeID)
    func drained(_ address: StreamAddress)
    func startDraining()
}
