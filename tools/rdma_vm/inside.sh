# Inside the virtual machine, on the host's root: devices, the command, and off.
# shellcheck shell=bash
export PATH=$(cat /vm/path):/usr/sbin:/sbin HOME=~root
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
case $(cat /vm/directory)/ in
  /tmp/*) ;; # it stays in sight; what is written there lies in memory, too
  *) mount -t tmpfs tmpfs /tmp ;;
esac
mount -t devpts devpts /dev/pts
ln -sfn /proc/self/fd /dev/fd
ulimit -l unlimited

# Two devices, each on one end of a veth pair. Both ends are in one network namespace (soft-RoCE of Linux 6.1 knows no
# other), so rules of routing make packets between them cross the pair instead of taking the short way.
ip link set lo up
ip link add v0 type veth peer name v1
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
for i in 0 1; do
  ip link set v$i mtu 9000 up
  ip address add 10.77.$i.1/24 dev v$i
  sysctl -qw net.ipv4.conf.v$i.rp_filter=0 net.ipv4.conf.v$i.accept_local=1
  rdma link add rxe$i type rxe netdev v$i || echo "rdma_vm: rxe$i could not be made"
done
for i in 0 1; do
  other=$((1 - i))
  ip neighbour replace 10.77.$other.1 lladdr "$(cat /sys/class/net/v$other/address)" dev v$i nud permanent
  ip route add table 10$i 10.77.$other.1 dev v$i
  ip rule add pref 1$i iif v$i lookup local
  ip rule add pref 2$i from 10.77.$i.1 to 10.77.$other.1 lookup 10$i
done
ip rule add pref 30 lookup local
ip rule del pref 0

echo "up after $(cut -d' ' -f1 /proc/uptime) s" > /vm/log
(cd "$(cat /vm/directory)" && bash -c "$(cat /vm/command)") > /dev/ttyS0 2>&1 < /dev/null
echo $? > /vm/status
echo "done after $(cut -d' ' -f1 /proc/uptime) s" >> /vm/log
sync
echo o > /proc/sysrq-trigger
sleep 100
