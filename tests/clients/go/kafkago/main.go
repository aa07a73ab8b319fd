// The walk of segmentio's kafka-go.
package main

import (
	"context"
	"errors"
	"slices"

	"kreassign/clients/walk"

	"github.com/segmentio/kafka-go"
)

func code(err error) (int, bool) {
	var known kafka.Error
	if errors.As(err, &known) {
		return int(known), true
	}
	return 0, false
}

// ids are the brokers by number, in their order.
func ids(brokers []kafka.Broker) []int {
	found := []int{}
	for _, one := range brokers {
		found = append(found, one.ID)
	}
	return found
}

func main() {
	w := walk.Start(code)
	client := &kafka.Client{Addr: kafka.TCP(w.Bootstrap...), Timeout: walk.Patience}
	ctx, topic, both := context.Background(), w.Topic, []int{0, 1}

	w.Step("brokers", func() (any, error) {
		found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
		if err != nil {
			return nil, err
		}
		racks := [][]any{}
		for _, one := range found.Brokers {
			racks = append(racks, []any{one.ID, one.Rack})
		}
		slices.SortFunc(racks, func(a, b []any) int { return a[0].(int) - b[0].(int) })
		return racks, nil
	})
	create := func(name string, factor int) func() (any, error) {
		wanted := []kafka.TopicConfig{{Topic: name, NumPartitions: 2, ReplicationFactor: factor}}
		return func() (any, error) {
			found, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: wanted})
			if err != nil {
				return nil, err
			}
			return "created", found.Errors[name]
		}
	}
	w.Step("create", create(topic, 2))
	w.Step("create again", create(topic, 2))
	w.Step("create with 9 replicas", create(topic+"-9", 9))

	move := func(lists map[int][]int) func() (any, error) {
		wanted := []kafka.AlterPartitionReassignmentsRequestAssignment{}
		for partition, replicas := range lists {
			wanted = append(wanted, kafka.AlterPartitionReassignmentsRequestAssignment{
				PartitionID: partition, BrokerIDs: replicas,
			})
		}
		return func() (any, error) {
			found, err := client.AlterPartitionReassignments(ctx, &kafka.AlterPartitionReassignmentsRequest{
				Topic: topic, Assignments: wanted, Timeout: walk.Patience,
			})
			if err != nil {
				return nil, err
			}
			for _, one := range found.PartitionResults {
				if one.Error != nil {
					return nil, one.Error
				}
			}
			return "accepted", found.Error
		}
	}
	settled := func() (any, error) {
		asked := map[string]kafka.ListPartitionReassignmentsRequestTopic{topic: {PartitionIndexes: both}}
		return "nothing moves", walk.Until(func() bool {
			found, err := client.ListPartitionReassignments(ctx, &kafka.ListPartitionReassignmentsRequest{
				Topics: asked, Timeout: walk.Patience,
			})
			return err == nil && len(found.Topics[topic].Partitions) == 0
		})
	}
	describe := func() ([][]any, error) {
		found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return nil, err
		}
		partitions := [][]any{}
		for _, one := range found.Topics[0].Partitions {
			isr := ids(one.Isr)
			slices.Sort(isr)
			partitions = append(partitions, []any{one.ID, ids(one.Replicas), isr})
		}
		slices.SortFunc(partitions, func(a, b []any) int { return a[0].(int) - b[0].(int) })
		return partitions, found.Topics[0].Error
	}
	described := func(first ...int) func() (any, error) {
		return func() (found any, err error) {
			_ = walk.Until(func() bool {
				partitions, failure := describe()
				found, err = partitions, failure
				return err == nil && len(partitions) == 2 && slices.Equal(partitions[0][1].([]int), first) &&
					len(partitions[0][2].([]int)) == 2 &&
					len(partitions[1][1].([]int)) == 2 && len(partitions[1][2].([]int)) == 2
			})
			return found, err
		}
	}
	w.Step("place", move(map[int][]int{0: {0, 1}, 1: {1, 2}}))
	w.Step("placed", settled)
	w.Step("describe", described(0, 1))
	w.Step("move", move(map[int][]int{0: {3, 2}}))
	w.Step("moved", settled)
	w.Step("describe what moved", described(3, 2))
	w.Step("move to broker 99", move(map[int][]int{0: {99}}))
	w.Step("cancel what does not move", move(map[int][]int{0: nil}))
	elect := func() (any, error) {
		found, err := client.ElectLeaders(ctx, &kafka.ElectLeadersRequest{
			Topic: topic, Partitions: []int{0}, Timeout: walk.Patience,
		})
		if err != nil {
			return nil, err
		}
		for _, one := range found.PartitionResults {
			if one.Error != nil {
				return nil, one.Error
			}
		}
		return "elected", found.Error
	}
	w.Step("elect leaders", func() (any, error) { _, _ = elect(); return "asked", nil })
	w.Step("elect leaders again", elect)
	grow := func(count int32) func() (any, error) {
		wanted := []kafka.TopicPartitionsConfig{{Name: topic, Count: count}}
		return func() (any, error) {
			found, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: wanted})
			if err != nil {
				return nil, err
			}
			return "grown", found.Errors[topic]
		}
	}
	w.Step("grow", grow(4))
	w.Step("shrink", grow(3))

	set := func(value string) func() (any, error) {
		change := []kafka.IncrementalAlterConfigsRequestConfig{
			{Name: "retention.ms", Value: value, ConfigOperation: kafka.ConfigOperationSet},
		}
		return func() (any, error) {
			found, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
				Resources: []kafka.IncrementalAlterConfigsRequestResource{
					{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: change},
				},
			})
			if err != nil {
				return nil, err
			}
			return "changed", found.Resources[0].Error
		}
	}
	w.Step("set retention", set("5000"))
	w.Step("set nonsense", set("soon"))
	configuration := func(kind kafka.ResourceType, name string) ([]kafka.DescribeConfigResponseConfigEntry, error) {
		found, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: name}},
		})
		if err != nil {
			return nil, err
		}
		return found.Resources[0].ConfigEntries, found.Resources[0].Error
	}
	w.Step("topic configuration", func() (told any, err error) {
		_ = walk.Until(func() bool {
			found, failure := configuration(kafka.ResourceTypeTopic, topic)
			err = failure
			for _, one := range found {
				if one.ConfigName == "retention.ms" {
					told = []any{one.ConfigValue, one.ConfigSource, len(found)}
					return one.ConfigValue == "5000"
				}
			}
			return false
		})
		return told, err
	})
	w.Step("broker configuration", func() (any, error) {
		found, err := configuration(kafka.ResourceTypeBroker, "0")
		return len(found) > 300, err
	})
	offset := func(at int64) func() (any, error) {
		return func() (any, error) {
			found, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
				Topics: map[string][]kafka.OffsetRequest{topic: {{Partition: 0, Timestamp: at}}},
			})
			if err != nil {
				return nil, err
			}
			one := found.Topics[topic][0]
			return []any{one.FirstOffset, one.LastOffset, len(one.Offsets)}, one.Error
		}
	}
	w.Step("first offset", offset(kafka.FirstOffset))
	w.Step("last offset", offset(kafka.LastOffset))
	w.Step("offset by time", offset(1_700_000_000_000))

	group := topic + "-group"
	w.Step("describe a group that is not there", func() (any, error) {
		found, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			return nil, err
		}
		return found.Groups[0].GroupState, found.Groups[0].Error
	})
	w.Step("delete a group that is not there", func() (any, error) {
		found, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			return nil, err
		}
		return "deleted", found.Errors[group]
	})
	w.Step("list ACLs", func() (any, error) {
		found, err := client.DescribeACLs(ctx, &kafka.DescribeACLsRequest{Filter: kafka.ACLFilter{
			ResourceTypeFilter: kafka.ResourceTypeAny, ResourcePatternTypeFilter: kafka.PatternTypeAny,
			Operation: kafka.ACLOperationTypeAny, PermissionType: kafka.ACLPermissionTypeAny,
		}})
		if err != nil {
			return nil, err
		}
		return len(found.Resources), found.Error
	})
	w.Step("list quotas", func() (any, error) {
		found, err := client.DescribeClientQuotas(ctx, &kafka.DescribeClientQuotasRequest{})
		if err != nil {
			return nil, err
		}
		return len(found.Entries), found.Error
	})
	w.Step("set a quota", func() (any, error) {
		found, err := client.AlterClientQuotas(ctx, &kafka.AlterClientQuotasRequest{
			ValidateOnly: true,
			Entries: []kafka.AlterClientQuotaEntry{{
				Entities: []kafka.AlterClientQuotaEntity{{EntityType: "client-id", EntityName: topic}},
				Ops:      []kafka.AlterClientQuotaOps{{Key: "producer_byte_rate", Value: 1e9}},
			}},
		})
		if err != nil {
			return nil, err
		}
		return "set", found.Entries[0].Error
	})
	w.Step("produce", func() (any, error) {
		found, err := client.Produce(ctx, &kafka.ProduceRequest{
			Topic: topic, Partition: 0, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("one"))}),
		})
		if err != nil {
			return nil, err
		}
		return "kept", found.Error
	})
	w.Step("consume", func() (any, error) {
		found, err := client.Fetch(ctx, &kafka.FetchRequest{Topic: topic, Partition: 0, MaxBytes: 1000})
		if err != nil {
			return nil, err
		}
		if found.Error != nil {
			return nil, found.Error
		}
		_, err = found.Records.ReadRecord()
		return 1, err
	})
	remove := func() (any, error) {
		found, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err != nil {
			return nil, err
		}
		return "deleted", found.Errors[topic]
	}
	w.Step("delete", remove)
	w.Step("delete again", remove)
}
