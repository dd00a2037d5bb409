import Engine
import Wire

/// What a caller names, which is found for a caller alone: what is of a topic beyond theirs is not there.
///
/// What stands in it comes out by `find` only, so that nothing is done to it for somebody who does not reach it.
package struct Named<Name: Sendable>: Sendable {
    fileprivate let name: Name

    package init(_ name: Name) {
        self.name = name
    }

    /// The row that a store is asked for, before `find` can say whether it is there for a caller: nothing is done to a
    /// row for its having been read.
    var rowName: Name { self.name }
}

/// A device that a caller reaches.
struct ReachedDevice {
    let index: DeviceIndex
    let token: DeviceToken
}

extension Named<DeviceToken> {
    func find(in engine: EmbeddedEngine, for caller: Caller) -> ReachedDevice? {
        guard let device = engine.find(self.name), caller.reaches(engine.identity(device).topic, in: engine) else {
            return nil
        }
        return ReachedDevice(index: device, token: self.name)
    }
}

extension Named<WakeID> {
    /// The wake's id, unless the wake is one of a topic beyond the caller's. The engine may know none of this id.
    func find(in engine: EmbeddedEngine, for caller: Caller) -> WakeID? {
        guard let topic = engine.topic(ofWake: self.name), !caller.reaches(topic, in: engine) else { return self.name }
        return nil
    }
}

extension Caller {
    func reaches(_ topic: TopicIndex, in engine: EmbeddedEngine) -> Bool {
        self.topics == .all || self.reaches(engine.snapshot(topic).name)
    }
}
