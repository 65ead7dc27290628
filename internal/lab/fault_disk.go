package lab

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fillDisk raises the alarm that etcd raises when its file reaches the quota.
// From then on every write fails as on a full disk, while reads and deletions
// work. Reaching the quota for real would take a restart with a tiny one,
// which is a second fault.
func (h *Host) fillDisk(ctx context.Context) error {
	return h.site.withEtcd(ctx, func(client *clientv3.Client) error {
		members, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		alarm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE}
		for _, member := range members.Members {
			alarm.MemberID = member.ID
			if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, alarm); err != nil {
				return err
			}
		}
		_, err = client.Put(ctx, "/lockstep.dev/lab/disk", "full?")
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("etcd raised the alarm and still answers a write with %v", err)
		}
		return nil
	})
}

// freeDisk lifts all alarms.
func (h *Host) freeDisk(ctx context.Context) error {
	return h.site.withEtcd(ctx, func(client *clientv3.Client) error {
		_, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	})
}
