// The walk of kafkajs.

import kafkajs from 'kafkajs'
import { bootstrap, topic, until, walker } from './walk.mjs'

const { Kafka, logLevel, ConfigResourceTypes, AclResourceTypes, AclOperationTypes, AclPermissionTypes } = kafkajs
const kafka = new Kafka({ brokers: bootstrap, logLevel: logLevel.NOTHING, retry: { retries: 2 } })
const admin = kafka.admin()
const step = walker('code')
const group = `${topic}-group`

await admin.connect()
await step('brokers', async () => (await admin.describeCluster()).brokers.map(one => one.nodeId).sort())
const create = (name, replicationFactor) => () =>
  admin.createTopics({ topics: [{ topic: name, numPartitions: 2, replicationFactor }] })
await step('create', create(topic, 2))
await step('create again', create(topic, 2))
await step('create with 9 replicas', create(`${topic}-9`, 9))

const move = (...lists) => async () => {
  const partitionAssignment = lists.map((replicas, partition) => ({ partition, replicas }))
  await admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] })
  return 'accepted'
}
const settled = async () => {
  const topics = [{ topic, partitions: [0, 1] }]
  const found = await until(() => admin.listPartitionReassignments({ topics }), found => found.topics.length === 0)
  return found.topics
}
const describe = async () => {
  const { topics: [found] } = await admin.fetchTopicMetadata({ topics: [topic] })
  const partitions = [...found.partitions].sort((a, b) => a.partitionId - b.partitionId)
  return partitions.map(one => [one.partitionId, one.replicas, [...one.isr].sort()])
}
await step('place', move([0, 1], [1, 2]))
await step('placed', settled)
const described = (...first) => () => {
  const wanted = [[0, first, [...first].sort()], [1, [1, 2], [1, 2]]]
  return until(describe, found => JSON.stringify(found) === JSON.stringify(wanted))
}
await step('describe', described(0, 1))
await step('move', move([3, 2]))
await step('moved', settled)
await step('describe what moved', described(3, 2))
await step('move to broker 99', move([99]))

const grow = count => () => admin.createPartitions({ topicPartitions: [{ topic, count }] })
await step('grow', grow(4))
await step('shrink', grow(3))

const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
const set = value => async () => {
  const resources = [{ ...resource, configEntries: [{ name: 'retention.ms', value }] }]
  await admin.alterConfigs({ validateOnly: false, resources })
  return 'changed'
}
await step('set retention', set('5000'))
await step('set nonsense', set('soon'))
const configuration = async one => (await admin.describeConfigs({ resources: [one] })).resources[0].configEntries
await step('topic configuration', () => until(async () => {
  const found = await configuration(resource)
  const { configValue, configSource } = found.find(one => one.configName === 'retention.ms')
  return [configValue, configSource, found.length]
}, found => found[0] === '5000'))
await step('broker configuration', async () =>
  (await configuration({ type: ConfigResourceTypes.BROKER, name: '0' })).length > 300)

const firstOf = offsets => offsets.find(one => one.partition === 0)
await step('offsets', async () => firstOf(await admin.fetchTopicOffsets(topic)))
await step('offset by time', async () => firstOf(await admin.fetchTopicOffsetsByTimestamp(topic, 1_700_000_000_000)))

await step('describe a group that is not there', async () => {
  const { groups: [found] } = await admin.describeGroups([group])
  return [found.errorCode, found.state]
})
await step('offsets of a group that is not there', async () =>
  (await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions.map(one => one.offset))
await step('delete a group that is not there', () => admin.deleteGroups([group]))
await step('list ACLs', () => admin.describeAcls({
  resourceType: AclResourceTypes.ANY, resourcePatternType: 1, operation: AclOperationTypes.ANY,
  permissionType: AclPermissionTypes.ANY
}))
await step('delete records', () => admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '0' }] }))

const producer = kafka.producer({ retry: { retries: 2 } })
await step('produce', async () => {
  await producer.connect()
  const found = await producer.send({ topic, messages: [{ partition: 0, value: 'one' }] })
  return found.map(one => one.errorCode)
})
await producer.disconnect()

const remove = async () => {
  await admin.deleteTopics({ topics: [topic] })
  return 'deleted'
}
await step('delete', remove)
await step('delete again', remove)
await admin.disconnect()
process.exit(0)
