package site

import "testing"

// TestDrives: the disk of the root comes first, and a disk inherits settings that it lacks from its
// machine.
func TestDrives(t *testing.T) {
	v := VM{Disk: QCow2, Size: 1 << 30, DiskSettings: DiskSettings{Cache: "none", IOPS: 100},
		Disks: []Drive{{Name: "data", Disk: "/dev/vg/lv", DiskSettings: DiskSettings{Cache: "unsafe"}}}}
	all := v.Drives()
	if len(all) != 2 || all[0] != (Drive{Name: RootDisk, Disk: QCow2, Size: 1 << 30,
		DiskSettings: DiskSettings{Cache: "none", IOPS: 100}}) ||
		all[1] != (Drive{Name: "data", Disk: "/dev/vg/lv", DiskSettings: DiskSettings{Cache: "unsafe", IOPS: 100}}) ||
		v.Disks[0].IOPS != 0 {
		t.Errorf("%+v", all)
	}
	if len((VM{}).Drives()) != 0 || !all[1].IsDevice() || all[0].IsDevice() {
		t.Error("a machine without disks has some, or a file is a device")
	}
}

// TestReplug: which changes of a running machine's disks are possible.
func TestReplug(t *testing.T) {
	before := VM{Disk: QCow2, Size: 1 << 30, Disks: []Drive{{Name: "a", Disk: RawFile, Size: 1 << 26},
		{Name: "b", Disk: RawFile, Size: 1 << 26}}}
	for _, try := range []struct {
		change func(*VM)
		want   string // "-" if it is impossible while the machine runs
	}{
		{func(*VM) {}, ""},
		{func(v *VM) { v.Disks = v.Disks[1:] }, "unplugs disk a"},
		{func(v *VM) { v.Disks = append(v.Disks, Drive{Name: "c", Disk: QCow2, Size: 1 << 26}) }, "plugs disk c"},
		{func(v *VM) { v.Disks[1].Size, v.Read = 1<<27, 1<<20 },
			"bounds disk orrery-root, bounds disk a, bounds disk b, enlarges disk b"},
		{func(v *VM) { v.Size = 1 << 29 }, "-"},
		{func(v *VM) { v.Disks[0].Cache = "none" }, "-"},
		{func(v *VM) { v.Disks[0].Disk = QCow2 }, "-"},
		{func(v *VM) { v.Disk = "" }, "-"},
	} {
		after := before
		after.Disks = append([]Drive{}, before.Disks...)
		try.change(&after)
		r, live := before.DiskChange(after)
		if got := r.String(); live != (try.want != "-") || live && got != try.want {
			t.Errorf("%q, %v, not %q", got, live, try.want)
		}
	}
	if v := (VM{CPU: "max", Disk: QCow2, Size: 1, Disks: before.Disks,
		DiskSettings: DiskSettings{IOPS: 1}}).Fixed(); v.CPU != "max" ||
		v.Disk != QCow2 || v.Size != 0 || v.Disks != nil || v.IOPS != 0 {
		t.Errorf("%+v", v)
	}
}
