// The walk of franz-go and its admin client kadm.
package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"kreassign/clients/walk"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func code(err error) (int, bool) {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code), true
	}
	return 0, false
}

func try[T any](w *walk.Walk, name string, ask func(context.Context) (T, error), tell func(T) (any, error)) {
	w.Step(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), walk.Patience)
		defer cancel()
		answer, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		return tell(answer)
	})
}

type ctx = context.Context

func main() {
	w := walk.Start(code)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.Bootstrap...), kgo.RetryTimeout(walk.Patience),
		kgo.RecordDeliveryTimeout(walk.Patience), kgo.MetadataMinAge(100*time.Millisecond))
	walk.Fail(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	topic := w.Topic
	var both kadm.TopicsSet
	both.Add(topic, 0, 1)

	try(w, "brokers", admin.ListBrokers, func(found kadm.BrokerDetails) (any, error) {
		racks := [][]any{}
		for _, one := range found {
			racks = append(racks, []any{one.NodeID, *one.Rack})
		}
		return racks, nil
	})

	created := func(found kadm.CreateTopicResponse) (any, error) { return "created", found.Err }
	create := func(name string, factor int16) func(ctx) (kadm.CreateTopicResponse, error) {
		return func(c ctx) (kadm.CreateTopicResponse, error) { return admin.CreateTopic(c, 2, factor, nil, name) }
	}
	try(w, "create", create(topic, 2), created)
	try(w, "create again", create(topic, 2), created)
	try(w, "create with 9 replicas", create(topic+"-9", 9), created)

	alter := func(lists map[int32][]int32) func(ctx) (kadm.AlterPartitionAssignmentsResponses, error) {
		var request kadm.AlterPartitionAssignmentsReq
		for partition, replicas := range lists {
			if replicas == nil {
				request.CancelAssign(topic, partition)
			} else {
				request.Assign(topic, partition, replicas)
			}
		}
		return func(c ctx) (kadm.AlterPartitionAssignmentsResponses, error) {
			return admin.AlterPartitionAssignments(c, request)
		}
	}
	altered := func(found kadm.AlterPartitionAssignmentsResponses) (any, error) {
		return "accepted", found.Error()
	}
	moving := func(c ctx) (kadm.ListPartitionReassignmentsResponses, error) {
		return admin.ListPartitionReassignments(c, both)
	}
	settled := func(found kadm.ListPartitionReassignmentsResponses) (any, error) {
		return "nothing moves", walk.Until(func() bool {
			again, err := moving(context.Background())
			return err == nil && len(again) == 0
		})
	}
	// The client keeps what it was told for a moment.
	describe := func(first ...int32) func(ctx) (kadm.TopicDetails, error) {
		return func(c ctx) (found kadm.TopicDetails, err error) {
			_ = walk.Until(func() bool {
				found, err = admin.ListTopics(c, topic)
				one, other := found[topic].Partitions[0], found[topic].Partitions[1]
				return err == nil && slices.Equal(one.Replicas, first) && len(one.ISR) == 2 &&
					len(other.Replicas) == 2 && len(other.ISR) == 2
			})
			return found, err
		}
	}
	described := func(found kadm.TopicDetails) (any, error) {
		partitions := [][]any{}
		for _, one := range found[topic].Partitions.Sorted() {
			slices.Sort(one.ISR)
			partitions = append(partitions, []any{one.Partition, one.Replicas, one.ISR, len(one.OfflineReplicas)})
		}
		return partitions, found[topic].Err
	}
	try(w, "place", alter(map[int32][]int32{0: {0, 1}, 1: {1, 2}}), altered)
	try(w, "placed", moving, settled)
	try(w, "describe", describe(0, 1), described)
	try(w, "move", alter(map[int32][]int32{0: {3, 2}}), altered)
	try(w, "moved", moving, settled)
	try(w, "describe what moved", describe(3, 2), described)
	try(w, "move to broker 99", alter(map[int32][]int32{0: {99}}), altered)
	try(w, "cancel what does not move", alter(map[int32][]int32{0: nil}), altered)

	try(w, "elect leaders", func(c ctx) (kadm.ElectLeadersResults, error) {
		return admin.ElectLeaders(c, kadm.ElectPreferredReplica, both)
	}, func(found kadm.ElectLeadersResults) (any, error) {
		return len(found[topic]), nil
	})
	try(w, "elect leaders again", func(c ctx) (kadm.ElectLeadersResults, error) {
		return admin.ElectLeaders(c, kadm.ElectPreferredReplica, both)
	}, func(found kadm.ElectLeadersResults) (any, error) { return nil, found[topic][0].Err })

	try(w, "grow", func(c ctx) (kadm.CreatePartitionsResponses, error) { return admin.UpdatePartitions(c, 4, topic) },
		func(found kadm.CreatePartitionsResponses) (any, error) { return "grown", found[topic].Err })
	try(w, "shrink", func(c ctx) (kadm.CreatePartitionsResponses, error) { return admin.UpdatePartitions(c, 3, topic) },
		func(found kadm.CreatePartitionsResponses) (any, error) { return "shrunk", found[topic].Err })

	set := func(key, value string) func(ctx) (kadm.AlterConfigsResponses, error) {
		change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}
		return func(c ctx) (kadm.AlterConfigsResponses, error) { return admin.AlterTopicConfigs(c, change, topic) }
	}
	changed := func(found kadm.AlterConfigsResponses) (any, error) { return "changed", found[0].Err }
	try(w, "set retention", set("retention.ms", "5000"), changed)
	try(w, "set nonsense", set("retention.ms", "soon"), changed)
	value := func(key string) func(kadm.ResourceConfigs) (any, error) {
		return func(found kadm.ResourceConfigs) (any, error) {
			for _, one := range found[0].Configs {
				if one.Key == key {
					return []any{one.MaybeValue(), one.Source.String(), len(found[0].Configs)}, nil
				}
			}
			return nil, found[0].Err
		}
	}
	try(w, "topic configuration", func(c ctx) (found kadm.ResourceConfigs, err error) {
		_ = walk.Until(func() bool {
			found, err = admin.DescribeTopicConfigs(c, topic)
			told, _ := value("retention.ms")(found)
			return err == nil && told.([]any)[0] == "5000"
		})
		return found, err
	}, value("retention.ms"))
	try(w, "broker configuration", func(c ctx) (kadm.ResourceConfigs, error) {
		return admin.DescribeBrokerConfigs(c, 0)
	}, func(found kadm.ResourceConfigs) (any, error) { return len(found[0].Configs) > 300, found[0].Err })

	offsets := func(found kadm.ListedOffsets) (any, error) {
		one, _ := found.Lookup(topic, 0)
		return []any{one.Offset, one.Timestamp}, one.Err
	}
	try(w, "first offset", func(c ctx) (kadm.ListedOffsets, error) { return admin.ListStartOffsets(c, topic) }, offsets)
	try(w, "last offset", func(c ctx) (kadm.ListedOffsets, error) { return admin.ListEndOffsets(c, topic) }, offsets)
	try(w, "offset by time", func(c ctx) (kadm.ListedOffsets, error) {
		return admin.ListOffsetsAfterMilli(c, 1_700_000_000_000, topic)
	}, offsets)
	try(w, "log directories", func(c ctx) (kadm.DescribedAllLogDirs, error) { return admin.DescribeAllLogDirs(c, both) },
		func(found kadm.DescribedAllLogDirs) (any, error) {
			copies := map[int32]int{}
			for broker, dirs := range found {
				for _, dir := range dirs {
					copies[broker] += len(dir.Topics[topic])
				}
			}
			return copies, nil
		})

	group := topic + "-group"
	try(w, "describe a group that is not there", func(c ctx) (kadm.DescribedGroups, error) {
		return admin.DescribeGroups(c, group)
	}, func(found kadm.DescribedGroups) (any, error) { return found[group].State, found[group].Err })
	try(w, "offsets of a group that is not there", func(c ctx) (kadm.OffsetResponses, error) {
		return admin.FetchOffsets(c, group)
	}, func(found kadm.OffsetResponses) (any, error) { return len(found), nil })
	try(w, "delete a group that is not there", func(c ctx) (kadm.DeleteGroupResponse, error) {
		return admin.DeleteGroup(c, group)
	}, func(found kadm.DeleteGroupResponse) (any, error) { return "deleted", found.Err })

	try(w, "list ACLs", func(c ctx) (kadm.DescribeACLsResults, error) {
		return admin.DescribeACLs(c, kadm.NewACLs().AnyResource().Allow().Deny().AllowHosts().DenyHosts().Operations())
	}, func(found kadm.DescribeACLsResults) (any, error) { return len(found[0].Described), found[0].Err })
	try(w, "list quotas", func(c ctx) (kadm.DescribedClientQuotas, error) {
		return admin.DescribeClientQuotas(c, false, nil)
	}, func(found kadm.DescribedClientQuotas) (any, error) { return len(found), nil })
	try(w, "list SCRAM users", func(c ctx) (kadm.DescribedUserSCRAMs, error) { return admin.DescribeUserSCRAMs(c) },
		func(found kadm.DescribedUserSCRAMs) (any, error) { return len(found), nil })
	try(w, "list transactions", func(c ctx) (kadm.ListedTransactions, error) {
		return admin.ListTransactions(c, nil, nil)
	}, func(found kadm.ListedTransactions) (any, error) { return len(found), nil })

	var records kadm.Offsets
	records.Add(kadm.Offset{Topic: topic, Partition: 0, At: 0})
	try(w, "delete records", func(c ctx) (kadm.DeleteRecordsResponses, error) { return admin.DeleteRecords(c, records) },
		func(found kadm.DeleteRecordsResponses) (any, error) { return "deleted", found[topic][0].Err })
	quota := kadm.AlterClientQuotaEntry{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id"}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1e9}},
	}
	try(w, "set a quota", func(c ctx) (kadm.AlteredClientQuotas, error) {
		return admin.ValidateAlterClientQuotas(c, []kadm.AlterClientQuotaEntry{quota})
	}, func(found kadm.AlteredClientQuotas) (any, error) { return "set", found[0].Err })

	try(w, "produce", func(c ctx) (kgo.ProduceResults, error) {
		return client.ProduceSync(c, &kgo.Record{Topic: topic, Value: []byte("one")}), nil
	}, func(found kgo.ProduceResults) (any, error) { return "kept", found.FirstErr() })
	client.AddConsumeTopics(topic)
	try(w, "consume", func(c ctx) (kgo.Fetches, error) { return client.PollFetches(c), nil },
		func(found kgo.Fetches) (any, error) { return found.NumRecords(), found.Err() })

	remove := func(c ctx) (kadm.DeleteTopicResponse, error) { return admin.DeleteTopic(c, topic) }
	removed := func(found kadm.DeleteTopicResponse) (any, error) { return "deleted", found.Err }
	try(w, "delete", remove, removed)
	try(w, "delete again", remove, removed)
}
