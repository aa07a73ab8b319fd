// The walk of Sarama.
package main

import (
	"errors"
	"slices"
	"time"

	"kreassign/clients/walk"

	"github.com/IBM/sarama"
)

func code(err error) (int, bool) {
	var known sarama.KError
	if errors.As(err, &known) {
		return int(known), true
	}
	return 0, false
}

func main() {
	w := walk.Start(code)
	settings := sarama.NewConfig()
	settings.Version = sarama.MaxVersion
	settings.Admin.Timeout = walk.Patience
	settings.Metadata.Retry.Max = 3
	settings.Producer.Return.Successes = true
	settings.Producer.Retry.Max = 2
	settings.Consumer.Return.Errors = true
	client, err := sarama.NewClient(w.Bootstrap, settings)
	walk.Fail(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	walk.Fail(err)
	defer admin.Close()
	topic, both := w.Topic, []int32{0, 1}

	w.Step("brokers", func() (any, error) {
		found, _, err := admin.DescribeCluster()
		racks := [][]any{}
		for _, one := range found {
			racks = append(racks, []any{one.ID(), one.Rack()})
		}
		slices.SortFunc(racks, func(a, b []any) int { return int(a[0].(int32) - b[0].(int32)) })
		return racks, err
	})
	create := func(name string, factor int16) func() (any, error) {
		detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: factor}
		return func() (any, error) { return "created", admin.CreateTopic(name, detail, false) }
	}
	w.Step("create", create(topic, 2))
	w.Step("create again", create(topic, 2))
	w.Step("create with 9 replicas", create(topic+"-9", 9))

	move := func(lists ...[]int32) func() (any, error) {
		return func() (any, error) { return "accepted", admin.AlterPartitionReassignments(topic, lists) }
	}
	settled := func() (any, error) {
		return "nothing moves", walk.Until(func() bool {
			found, err := admin.ListPartitionReassignments(topic, both)
			return err == nil && len(found[topic]) == 0
		})
	}
	describe := func() ([][]any, error) {
		found, err := admin.DescribeTopics([]string{topic})
		if err != nil {
			return nil, err
		}
		partitions := [][]any{}
		for _, one := range found[0].Partitions {
			slices.Sort(one.Isr)
			partitions = append(partitions, []any{one.ID, one.Replicas, one.Isr, len(one.OfflineReplicas)})
		}
		slices.SortFunc(partitions, func(a, b []any) int { return int(a[0].(int32) - b[0].(int32)) })
		return partitions, nil
	}
	described := func(first ...int32) func() (any, error) {
		return func() (found any, err error) {
			_ = walk.Until(func() bool {
				partitions, failure := describe()
				found, err = partitions, failure
				return err == nil && len(partitions) == 2 && slices.Equal(partitions[0][1].([]int32), first) &&
					len(partitions[0][2].([]int32)) == 2 &&
					len(partitions[1][1].([]int32)) == 2 && len(partitions[1][2].([]int32)) == 2
			})
			return found, err
		}
	}
	w.Step("place", move([]int32{0, 1}, []int32{1, 2}))
	w.Step("placed", settled)
	w.Step("describe", described(0, 1))
	w.Step("move", move([]int32{3, 2}, []int32{1, 2}))
	w.Step("moved", settled)
	w.Step("describe what moved", described(3, 2))
	w.Step("move to broker 99", move([]int32{99}, []int32{1, 2}))
	w.Step("cancel what does not move", move(nil, nil))
	elect := func() (any, error) {
		found, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{topic: both})
		if err == nil && found[topic][0].ErrorCode != sarama.ErrNoError {
			err = found[topic][0].ErrorCode
		}
		return "elected", err
	}
	w.Step("elect leaders", func() (any, error) { _, _ = elect(); return "asked", nil })
	w.Step("elect leaders again", elect)
	w.Step("grow", func() (any, error) { return "grown", admin.CreatePartitions(topic, 4, nil, false) })
	w.Step("shrink", func() (any, error) { return "shrunk", admin.CreatePartitions(topic, 3, nil, false) })

	set := func(value string) func() (any, error) {
		change := map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
		}
		return func() (any, error) {
			return "changed", admin.IncrementalAlterConfig(sarama.TopicResource, topic, change, false)
		}
	}
	w.Step("set retention", set("5000"))
	w.Step("set nonsense", set("soon"))
	w.Step("topic configuration", func() (told any, err error) {
		_ = walk.Until(func() bool {
			found, failure := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
			err = failure
			for _, one := range found {
				if one.Name == "retention.ms" {
					told = []any{one.Value, one.Source.String(), len(found)}
					return one.Value == "5000"
				}
			}
			return false
		})
		return told, err
	})
	w.Step("broker configuration", func() (any, error) {
		found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.BrokerResource, Name: "0"})
		return len(found) > 300, err
	})
	offset := func(at int64) func() (any, error) {
		return func() (any, error) {
			found, err := admin.ListOffsets(map[string]map[int32]int64{topic: {0: at}}, &sarama.ListOffsetsOptions{})
			if err != nil {
				return nil, err
			}
			if one := found[topic][0]; one.Err != sarama.ErrNoError {
				return nil, one.Err
			}
			return []any{found[topic][0].Offset, found[topic][0].Timestamp}, nil
		}
	}
	w.Step("first offset", offset(sarama.OffsetOldest))
	w.Step("last offset", offset(sarama.OffsetNewest))
	w.Step("offset by time", offset(1_700_000_000_000))
	w.Step("log directories", func() (any, error) {
		found, err := admin.DescribeLogDirs([]int32{0, 1, 2, 3})
		dirs := map[int32]int{}
		for broker, each := range found {
			dirs[broker] = len(each)
		}
		return dirs, err
	})

	group := topic + "-group"
	w.Step("describe a group that is not there", func() (any, error) {
		found, err := admin.DescribeConsumerGroups([]string{group})
		if err != nil {
			return nil, err
		}
		if found[0].Err != sarama.ErrNoError {
			return nil, found[0].Err
		}
		return found[0].State, nil
	})
	w.Step("offsets of a group that is not there", func() (any, error) {
		found, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return nil, err
		}
		return found.Blocks[topic][0].Offset, nil
	})
	w.Step("delete a group that is not there", func() (any, error) {
		return "deleted", admin.DeleteConsumerGroup(group)
	})
	w.Step("list ACLs", func() (any, error) {
		found, err := admin.ListAcls(sarama.AclFilter{
			ResourceType: sarama.AclResourceAny, ResourcePatternTypeFilter: sarama.AclPatternAny,
			Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny,
		})
		return len(found), err
	})
	w.Step("list quotas", func() (any, error) {
		found, err := admin.DescribeClientQuotas(nil, false)
		return len(found), err
	})
	w.Step("list SCRAM users", func() (any, error) {
		found, err := admin.DescribeUserScramCredentials(nil)
		return len(found), err
	})
	w.Step("delete records", func() (any, error) {
		return "deleted", admin.DeleteRecords(topic, map[int32]int64{0: 0})
	})
	w.Step("set a quota", func() (any, error) {
		entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchDefault}}
		return "set", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e9}, true)
	})

	w.Step("produce", func() (any, error) {
		producer, err := sarama.NewSyncProducerFromClient(client)
		if err != nil {
			return nil, err
		}
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("one")})
		return "kept", err
	})
	w.Step("consume", func() (any, error) {
		consumer, err := sarama.NewConsumerFromClient(client)
		if err != nil {
			return nil, err
		}
		// Which partition the record went to is drawn by lot: all of them are read.
		records, failures := make(chan *sarama.ConsumerMessage, 4), make(chan error, 4)
		for partition := int32(0); partition < 4; partition++ {
			one, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
			if err != nil {
				return nil, err
			}
			go func() {
				select {
				case record := <-one.Messages():
					records <- record
				case failure := <-one.Errors():
					failures <- failure
				}
			}()
		}
		select {
		case <-records:
			return 1, nil
		case failure := <-failures:
			return nil, failure
		case <-time.After(walk.Patience):
			return "nothing, and no error", nil
		}
	})
	remove := func() (any, error) { return "deleted", admin.DeleteTopic(topic) }
	w.Step("delete", remove)
	w.Step("delete again", remove)
}
