// SPDX-License-Identifier: GPL-2.0
/* What ethtool reads and writes: driver, rings, pause, channels, link, per-priority counters (mlx5's names). */
#include <linux/ethtool.h>
#include <linux/log2.h>
#include "fakecx.h"

#define LARGEST_RING 8192
#define MOST_CHANNELS 16

static const char *firmware_version;
static u32 link_speed;

static const char * const counters[] = {
	"rx_prio%d_packets", "rx_prio%d_bytes", "tx_prio%d_packets", "tx_prio%d_bytes", "rx_prio%d_pause", "tx_prio%d_pause",
};

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct fakecx *cx = netdev_priv(dev);

	strscpy(info->driver, "mlx5_core", sizeof(info->driver));
	strscpy(info->fw_version, firmware_version, sizeof(info->fw_version));
	strscpy(info->bus_info, pci_name(cx->pdev), sizeof(info->bus_info));
}

static void get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *kernel,
			  struct netlink_ext_ack *extack)
{
	struct fakecx *cx = netdev_priv(dev);

	ring->rx_max_pending = LARGEST_RING;
	ring->tx_max_pending = LARGEST_RING;
	ring->rx_pending = cx->rx_ring;
	ring->tx_pending = cx->tx_ring;
}

static int set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *kernel,
			 struct netlink_ext_ack *extack)
{
	struct fakecx *cx = netdev_priv(dev);

	if (!ring->rx_pending || !ring->tx_pending)
		return -EINVAL;
	cx->rx_ring = roundup_pow_of_two(ring->rx_pending);
	cx->tx_ring = roundup_pow_of_two(ring->tx_pending);
	return 0;
}

static void get_pauseparam(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct fakecx *cx = netdev_priv(dev);

	pause->rx_pause = cx->pause_rx;
	pause->tx_pause = cx->pause_tx;
}

static int set_pauseparam(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct fakecx *cx = netdev_priv(dev);

	if (pause->autoneg)
		return -EINVAL;
	cx->pause_rx = !!pause->rx_pause;
	cx->pause_tx = !!pause->tx_pause;
	return 0;
}

static void get_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	struct fakecx *cx = netdev_priv(dev);

	channels->max_combined = MOST_CHANNELS;
	channels->combined_count = cx->channels;
}

static int set_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	struct fakecx *cx = netdev_priv(dev);

	cx->channels = channels->combined_count;
	return 0;
}

static int get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = netif_carrier_ok(dev) ? link_speed : SPEED_UNKNOWN;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.port = PORT_DA;
	return 0;
}

static int get_sset_count(struct net_device *dev, int set)
{
	return set == ETH_SS_STATS ? IEEE_8021QAZ_MAX_TCS * ARRAY_SIZE(counters) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *dev, u32 set, u8 *out)
{
	int priority, i;

	if (set != ETH_SS_STATS)
		return;
	for (priority = 0; priority < IEEE_8021QAZ_MAX_TCS; priority++)
		for (i = 0; i < ARRAY_SIZE(counters); i++)
			ethtool_sprintf(&out, counters[i], priority);
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *out)
{
	struct fakecx *cx = netdev_priv(dev);
	int priority;

	for (priority = 0; priority < IEEE_8021QAZ_MAX_TCS; priority++) {
		*out++ = cx->count[FAKECX_RX][priority][FAKECX_PACKETS];
		*out++ = cx->count[FAKECX_RX][priority][FAKECX_BYTES];
		*out++ = cx->count[FAKECX_TX][priority][FAKECX_PACKETS];
		*out++ = cx->count[FAKECX_TX][priority][FAKECX_BYTES];
		*out++ = 0;	/* there are no pause frames here, so none are claimed */
		*out++ = 0;
	}
}

static const struct ethtool_ops ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_ringparam = get_ringparam,
	.set_ringparam = set_ringparam,
	.get_pauseparam = get_pauseparam,
	.set_pauseparam = set_pauseparam,
	.get_channels = get_channels,
	.set_channels = set_channels,
	.get_link_ksettings = get_link_ksettings,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
};

void fakecx_ethtool_report(const char *firmware, u32 speed)
{
	firmware_version = firmware;
	link_speed = speed;
}

/* Before the netdev is registered: udev asks for the driver at once. */
void fakecx_ethtool_setup(struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);

	cx->rx_ring = cx->tx_ring = 1024;
	cx->channels = 8;
	cx->pause_rx = cx->pause_tx = 1;
	dev->ethtool_ops = &ethtool_ops;
}
