import Engine

/// How a transaction of a simulated database ended.
enum DatabaseEnd {
    case committed
    case failed(ClusterFailure)
}
