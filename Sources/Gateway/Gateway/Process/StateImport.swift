import DeviceEngine
import EngineRoom
import PostgresStore
package import Settings

/// Moves the state of a gateway that had its store to itself into the database that a configuration names.
package enum StateImport {
    /// Why nothing more was moved, and what to do about it.
    package struct Failure: Error, Sendable {
        package let message: String
    }

    /// What was moved.
    package struct Report: Sendable {
        package let devices: Int
        /// The devices that an import before, which was cut off, had moved.
        package let devicesBefore: Int
        package let topics: Int
        package let pushesAccepted: Int64
        package let pushesPending: Int64
        package let requestsWaiting: Int64
        /// Pushes, requests and transfers whose wakes were in flight: they wait again, or ended as lost.
        package let wakesLost: Int64
        /// Names of what gateways share that the database had already, and has still.
        package let kept: [String]
    }

    /// Moves all of it; an import that was cut off goes on.
    ///
    /// - Parameters:
    ///   - folder: the state folder, which nobody else may use meanwhile.
    ///   - configuration: by which everything is judged, and which names the database.
    ///   - onProgress: hears how many devices there are, and how many are moved.
    /// - Throws: when the folder holds no state, the database has its topics already, or the state was moved before.
    package static func run(
        from folder: String,
        _ configuration: GatewayConfiguration,
        onProgress: (_ moved: Int, _ all: Int) -> Void
    ) throws(Failure) -> Report {
        do throws(StoreError) { return try self.move(folder, configuration, onProgress) } catch {
            throw Failure(message: error.message)
        }
    }

    private static func move(
        _ folder: String,
        _ configuration: GatewayConfiguration,
        _ onProgress: (_ moved: Int, _ all: Int) -> Void
    ) throws(StoreError) -> Report {
        let settings = try configuration.storeSettings()
        var old = configuration
        old.stateFolder = folder
        old.store = .sqlite
        let state = try StateExport(old)
        let source = DatabaseImport.Source(id: state.id, fingerprint: state.fingerprint, topics: state.topics)
        let database = try DatabaseImport(source, at: state.now, settings)
        let wakesLost = try state.begin(at: database.now)
        let before = database.next
        while database.next < state.deviceCount {
            let end = min(state.deviceCount, database.next + DatabaseImport.devicesMax)
            try database.write(state.rows(database.next..<end, topicNumbers: database.topicNumbers))
            onProgress(database.next, state.deviceCount)
        }
        let books = state.books()
        let counts = DatabaseImport.Counts(total: books.total, topics: books.topics, rejections: state.rejections)
        let kept = try database.finish(counts, values: state.values, countingSince: state.countingSince)
        return Report(
            devices: state.deviceCount,
            devicesBefore: before,
            topics: state.topics.count,
            pushesAccepted: books.total.accepted,
            pushesPending: books.total.pending,
            requestsWaiting: books.total.requests.waiting.sum,
            wakesLost: wakesLost,
            kept: kept
        )
    }
}
