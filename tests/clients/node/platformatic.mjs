// The walk of @platformatic/kafka.

import { Admin, Producer, stringSerializers } from '@platformatic/kafka'
import { bootstrap, topic, until, walker } from './walk.mjs'

const options = { clientId: 'walk', bootstrapBrokers: bootstrap, retries: 2, timeout: 10_000 }
const admin = new Admin(options)
const step = walker('apiCode')
const group = `${topic}-group`
const TOPIC = 2
const BROKER = 4

await step('brokers', async () => {
  const { brokers } = await admin.metadata({ topics: [] })
  return [...brokers].map(([id, one]) => [id, one.rack]).sort((a, b) => a[0] - b[0])
})
const create = (name, how) => async () => {
  const [found] = await admin.createTopics({ topics: [name], ...how })
  return [found.partitions, found.replicas]
}
const placed = { partitions: -1, replicas: -1, assignments: [{ partition: 0, brokers: [0, 1] }, { partition: 1, brokers: [1, 2] }] }
await step('create', create(topic, placed))
await step('create again', create(topic, placed))
await step('create with 9 replicas', create(`${topic}-9`, { partitions: 2, replicas: 9 }))
await step('list', async () => (await admin.listTopics()).includes(topic))
const describe = async () => {
  const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
  return topics.get(topic).partitions.map(one => [one.leader, one.replicas])
}
await step('describe', () => until(describe, found => JSON.stringify(found) === '[[0,[0,1]],[1,[1,2]]]'))
const grow = count => async () => {
  await admin.createPartitions({ topics: [{ name: topic, count, assignments: null }] })
  return 'grown'
}
await step('grow', grow(4))
await step('shrink', grow(3))

const set = value => async () => {
  const configs = [{ name: 'retention.ms', configOperation: 0, value }]
  await admin.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC, resourceName: topic, configs }] })
  return 'changed'
}
await step('set retention', set('5000'))
await step('set nonsense', set('soon'))
const configuration = async (resourceType, resourceName) =>
  (await admin.describeConfigs({ resources: [{ resourceType, resourceName, configurationKeys: null }] }))[0].configs
await step('topic configuration', () => until(async () => {
  const found = await configuration(TOPIC, topic)
  const { value, configSource } = found.find(one => one.name === 'retention.ms')
  return [value, configSource, found.length]
}, found => found[0] === '5000'))
await step('broker configuration', async () => (await configuration(BROKER, '0')).length > 300)

const offset = timestamp => async () => {
  const asked = [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }]
  const [found] = await admin.listOffsets({ topics: asked })
  return [found.partitions[0].offset, found.partitions[0].timestamp, found.partitions[0].leaderEpoch]
}
await step('first offset', offset(-2n))
await step('last offset', offset(-1n))
await step('offset by time', offset(1_700_000_000_000n))
await step('log directories', async () => {
  const found = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0, 1] }] })
  const copies = ({ results }) => results.flatMap(dir => dir.topics.flatMap(one => one.partitions)).length
  return found.map(one => [one.broker, copies(one)]).sort((a, b) => a[0] - b[0])
})

await step('describe a group that is not there', async () => (await admin.describeGroups({ groups: [group] })).get(group).state)
await step('delete a group that is not there', () => admin.deleteGroups({ groups: [group] }))
await step('list ACLs', async () => (await admin.describeAcls({
  filter: {
    resourceType: 1, resourceName: null, resourcePatternType: 1, principal: null, host: null, operation: 1, permissionType: 1
  }
})).length)
await step('list quotas', async () => (await admin.describeClientQuotas({ components: [] })).length)
await step('delete records', async () => (await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 0n }] }] })).length)
await step('set a quota', async () => (await admin.alterClientQuotas({
  entries: [{ entities: [{ entityType: 'client-id', entityName: topic }], ops: [{ key: 'producer_byte_rate', value: 1e9, remove: false }] }],
  validateOnly: true
})).length)

const producer = new Producer({ ...options, serializers: stringSerializers })
await step('produce', async () => {
  await producer.send({ messages: [{ topic, partition: 0, value: 'one' }], acks: -1 })
  return 'kept'
})
const remove = async () => {
  await admin.deleteTopics({ topics: [topic] })
  return 'deleted'
}
await step('delete', remove)
await step('delete again', remove)
process.exit(0)
