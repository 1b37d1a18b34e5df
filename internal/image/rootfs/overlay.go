package rootfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// An Overlay is a root file system that consists of read-only layers and one private, writable
// layer.
//
// On disk, files have the owners that the node sees: root's files belong to 0. Idmapped mounts
// (mount_setattr(2), Linux 5.19 for overlayfs) map the owners for a node in a user namespace. So
// privileged nodes, unprivileged nodes and nodes with different ranges of ids share the same
// layers.
type Overlay struct {
	Lower  []string // trees, the topmost first; if there are none, Upper is the whole root
	Upper  string   // private layer
	Work   string   // overlayfs's work directory, empty, on Upper's file system
	Target string   // directory on which it is mounted
	IDs    IDs      // ids of the node; the zero IDs mean no idmap
	Binds  []Bind   // directories of the host that the node sees
	// Inside are binds at paths in the root, for a node that has no other program to bind them
	// further. The outer ones come first.
	Inside []Bind

	// Devices are device files beside the root, at DevicesAt, from where the container can bind them
	// further.
	Devices   []DeviceFile
	DevicesAt string

	// Namespace is the file to which a user namespace of the ids is bound (lxc.container.conf(5),
	// lxc.namespace.share.user), or "" for none.
	Namespace string
}

// A Bind makes a directory of the host visible at another directory of the host, from where the
// container can bind it further. It has the same idmap, unless it is read-only. A read-only source
// may be on a tmpfs, which cannot be idmapped before Linux 6.3.
type Bind struct {
	Source, Target string
	ReadOnly       bool
}

// StartCommand starts a command in a new mount namespace in which the overlay is mounted. The overlay is
// not visible outside of that namespace. It is unmounted when the last process in there ends,
// however it ends.
func (o *Overlay) StartCommand(cmd *exec.Cmd) error {
	return o.WithMounted(cmd.Start)
}

// WithMounted mounts the overlay in a private mount namespace while it runs work.
func (o *Overlay) WithMounted(work func() error) error {
	return host.OnLockedThread(func() error {
		if err := o.Enter(); err != nil {
			return err
		}
		return work()
	})
}

// Enter moves the calling thread into a new mount namespace and mounts the overlay there.
func (o *Overlay) Enter() error {
	ids, err := o.IDs.Open()
	if err != nil {
		return err
	}
	if ids != nil {
		defer ids.Close()
	}
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := hideIDTools(); err != nil {
		return err
	}
	if o.Namespace != "" {
		if err := o.showNamespace(); err != nil {
			return err
		}
	}
	if err := o.makeDevices(); err != nil {
		return err
	}
	return o.mount(ids)
}

// hideIDTools makes newuidmap(1) and newgidmap(1) not executable in this mount namespace. If LXC
// finds them, it requires a range for root in /etc/subuid, a file that Orrery must not write.
// Without them, LXC writes the maps itself, as root may.
func hideIDTools() error {
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// mount builds the overlay with short paths in a tmpfs over Target, because the kernel limits mount
// data to a page.
func (o *Overlay) mount(ids *os.File) error {
	if len(o.Lower) == 0 {
		return o.mountPlain(ids)
	}
	if err := unix.Mount("orrery", o.Target, "tmpfs", unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", o.Target, err)
	}
	var lower []string
	for i, tree := range o.Lower {
		at := filepath.Join(o.Target, strconv.Itoa(i))
		if err := attach(tree, at, ids, true); err != nil {
			return err
		}
		lower = append(lower, at)
	}
	// Upper and Work must be on one mount for overlayfs to rename between them.
	private := filepath.Join(o.Target, "private")
	if filepath.Dir(o.Upper) != filepath.Dir(o.Work) {
		return fmt.Errorf("%s and %s are not in the same directory", o.Upper, o.Work)
	}
	if err := attach(filepath.Dir(o.Upper), private, ids, false); err != nil {
		return err
	}
	if err := o.mountBinds(ids); err != nil {
		return err
	}
	// Override this kernel's defaults: what is written must be a layer of its own that refers to no
	// file below.
	options := fmt.Sprintf("metacopy=off,redirect_dir=off,index=off,lowerdir=%s,upperdir=%s,workdir=%s",
		strings.Join(lower, ":"),
		filepath.Join(private, filepath.Base(o.Upper)), filepath.Join(private, filepath.Base(o.Work)))
	if err := unix.Mount("overlay", o.Target, "overlay", unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("overlay of %s: %w", strings.Join(o.Lower, ", "), err)
	}
	return o.mountInside(ids)
}

// mountPlain mounts a tree without layers below it.
func (o *Overlay) mountPlain(ids *os.File) error {
	if err := o.mountBinds(ids); err != nil {
		return err
	}
	if err := attach(o.Upper, o.Target, ids, false); err != nil {
		return err
	}
	return o.mountInside(ids)
}

func (o *Overlay) mountBinds(ids *os.File) error {
	for _, b := range o.Binds {
		if err := attach(b.Source, b.Target, b.idmap(ids), b.ReadOnly); err != nil {
			return err
		}
	}
	return nil
}

// mountInside mounts Inside on directories of the root, which it creates for the node's root user.
// It follows no links that the node has created.
func (o *Overlay) mountInside(ids *os.File) error {
	for _, b := range o.Inside {
		if err := o.mountAt(b, ids); err != nil {
			return fmt.Errorf("%s of the node: %w", b.Target, err)
		}
	}
	return nil
}

func (o *Overlay) mountAt(b Bind, ids *os.File) error {
	root, err := tree.Open(o.Target) // open it each time: the last bind may have been mounted on it
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.MkdirAllNoFollow(b.Target, o.IDs.First, o.IDs.First)
	if err != nil {
		return err
	}
	defer dir.Close()
	loose, err := CloneTree(b.Source, b.idmap(ids), b.ReadOnly)
	if err != nil {
		return err
	}
	defer loose.Close()
	return AttachMount(loose, int(dir.Fd()))
}

// idmap returns the namespace for the idmap of a bind, or nil if it is not idmapped.
func (b Bind) idmap(ids *os.File) *os.File {
	if b.ReadOnly {
		return nil
	}
	return ids
}

// attach mounts a tree at a directory. If ids is not nil, it maps the owners.
func attach(tree, at string, ids *os.File, readOnly bool) error {
	if err := os.MkdirAll(at, 0o711); err != nil {
		return err
	}
	loose, err := CloneTree(tree, ids, readOnly)
	if err != nil {
		return err
	}
	defer loose.Close()
	if err := unix.MoveMount(int(loose.Fd()), "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount %s: %w", at, err)
	}
	return nil
}

// CloneTree returns a detached mount of a tree. If ids is not nil, it maps the owners.
func CloneTree(tree string, ids *os.File, readOnly bool) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, tree, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open_tree %s: %w", tree, err)
	}
	loose := os.NewFile(uintptr(fd), tree)
	// The content is not trusted, so its device nodes must not work.
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
	if ids != nil {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ids.Fd())
	}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, errors.Join(fmt.Errorf("mount_setattr %s: %w", tree, err), loose.Close())
	}
	return loose, nil
}

// AttachMount attaches a detached mount to an open directory.
func AttachMount(loose *os.File, dir int) error {
	err := unix.MoveMount(int(loose.Fd()), "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return os.NewSyscallError("move_mount", err)
}
