// SPDX-License-Identifier: GPL-2.0
/* The netdev: its frames travel over a lower netdev, counted by the priority that their DSCP maps to. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <net/dsfield.h>
#include <net/ipv6.h>
#include "fakecx.h"

#define LARGEST_MTU 9978	/* what mlx5 offers */

static void account(struct fakecx *cx, struct sk_buff *skb, enum fakecx_direction direction)
{
	u8 dscp = 0, priority;

	if (skb->protocol == htons(ETH_P_IP))
		dscp = ipv4_get_dsfield(ip_hdr(skb)) >> 2;
	else if (skb->protocol == htons(ETH_P_IPV6))
		dscp = ipv6_get_dsfield(ipv6_hdr(skb)) >> 2;
	priority = cx->priority_of_dscp[dscp & 63] & 7;
	cx->count[direction][priority][FAKECX_PACKETS]++;
	cx->count[direction][priority][FAKECX_BYTES] += skb->len;
}

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);
	unsigned int length = skb->len;

	if (!cx->lower) {
		dev_kfree_skb(skb);
		dev->stats.tx_dropped++;
		return NETDEV_TX_OK;
	}
	account(cx, skb, FAKECX_TX);
	skb->dev = cx->lower;
	if (dev_queue_xmit(skb) == NET_XMIT_SUCCESS) {
		dev->stats.tx_packets++;
		dev->stats.tx_bytes += length;
	} else {
		dev->stats.tx_dropped++;
	}
	return NETDEV_TX_OK;
}

static rx_handler_result_t receive(struct sk_buff **pskb)
{
	struct sk_buff *skb = skb_share_check(*pskb, GFP_ATOMIC);
	struct net_device *dev;

	if (!skb)
		return RX_HANDLER_CONSUMED;
	*pskb = skb;
	dev = rcu_dereference(skb->dev->rx_handler_data);
	if (!(dev->flags & IFF_UP)) {
		kfree_skb(skb);
		return RX_HANDLER_CONSUMED;
	}
	skb_reset_network_header(skb);
	if (pskb_may_pull(skb, sizeof(struct iphdr)))
		account(netdev_priv(dev), skb, FAKECX_RX);
	dev->stats.rx_packets++;
	dev->stats.rx_bytes += skb->len + ETH_HLEN;
	skb->dev = dev;
	return RX_HANDLER_ANOTHER;
}

static int open(struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);
	int error;

	if (!cx->lower)
		return 0;
	error = dev_open(cx->lower, NULL);
	if (error)
		return error;
	netif_carrier_on(dev);
	netif_start_queue(dev);
	return 0;
}

static int stop(struct net_device *dev)
{
	netif_stop_queue(dev);
	netif_carrier_off(dev);
	return 0;
}

static int change_mtu(struct net_device *dev, int mtu)
{
	dev->mtu = mtu;
	return 0;
}

static const struct net_device_ops netdev_ops = {
	.ndo_open = open,
	.ndo_stop = stop,
	.ndo_start_xmit = transmit,
	.ndo_change_mtu = change_mtu,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static int attach(struct net_device *dev, struct net_device *lower)
{
	int error;

	rtnl_lock();
	error = register_netdevice(dev);
	if (!error && lower) {
		/* The wire takes any size; what may pass is the MTU of the function's own netdev. */
		dev_set_mtu(lower, LARGEST_MTU);
		error = netdev_rx_handler_register(lower, receive, dev);
		if (error)
			unregister_netdevice(dev);
	}
	rtnl_unlock();
	return error;
}

struct net_device *fakecx_netdev_create(struct pci_dev *pdev, struct net_device *lower, const char *name)
{
	struct net_device *dev = alloc_etherdev(sizeof(struct fakecx));
	struct fakecx *cx;
	int error;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	cx = netdev_priv(dev);
	cx->lower = lower;
	cx->pdev = pdev;
	SET_NETDEV_DEV(dev, &pdev->dev);
	strscpy(dev->name, name, IFNAMSIZ);
	if (!strchr(name, '%'))
		dev->name_assign_type = NET_NAME_PREDICTABLE;	/* so that udev keeps it */
	dev->netdev_ops = &netdev_ops;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = LARGEST_MTU;
	dev->features |= NETIF_F_LLTX;
	if (lower)
		eth_hw_addr_set(dev, lower->dev_addr);
	else
		eth_hw_addr_random(dev);
	fakecx_dcb_setup(dev);
	fakecx_ethtool_setup(dev);
	netif_carrier_off(dev);
	error = attach(dev, lower);
	if (error) {
		free_netdev(dev);
		return ERR_PTR(error);
	}
	return dev;
}

void fakecx_netdev_destroy(struct net_device *dev)
{
	struct fakecx *cx = netdev_priv(dev);
	struct net_device *lower = cx->lower;

	rtnl_lock();
	if (lower)
		netdev_rx_handler_unregister(lower);
	unregister_netdevice(dev);
	rtnl_unlock();
	if (lower)
		dev_put(lower);
	free_netdev(dev);
}
